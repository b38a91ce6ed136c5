{{- define "toolhub.name" -}}
{{- if contains "toolhub" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-toolhub" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "toolhub.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "toolhub.selector" . }}
{{- end }}

{{- define "toolhub.selector" -}}
app.kubernetes.io/name: toolhub
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolhub.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}{{ else }}{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) }}{{ end }}
{{- end }}

{{/* Tells the boxes of this hub from those of others on one engine. */}}
{{- define "toolhub.instance" -}}
{{ .Release.Namespace }}/{{ include "toolhub.name" . }}
{{- end }}
