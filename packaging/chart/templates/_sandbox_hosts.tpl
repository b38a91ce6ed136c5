{{/*
A sandbox host by its name, as its Service makes it known. Of each there is one: a worker finds a warm box, and ends a call, by asking
this one, and its certificate has this name.
*/}}
{{- define "toolhub.boxdName" -}}
{{ include "toolhub.name" .root }}-boxd-{{ .host }}
{{- end }}

{{- define "toolhub.boxdAddress" -}}
{{ include "toolhub.boxdName" . }}.{{ .root.Release.Namespace }}.svc
{{- end }}

{{/* All of them, as workers are told: the order does not count. */}}
{{- define "toolhub.boxdAddresses" -}}
{{- $addresses := list }}
{{- range $host, $_ := .Values.sandboxHosts.hosts }}
{{- $addresses = append $addresses (printf "tls://%s:8443" (include "toolhub.boxdAddress" (dict "root" $ "host" $host))) }}
{{- end }}
{{- join "," $addresses }}
{{- end }}

{{/* By which a worker and a host know each other. (dict "secrets" $.Values.secrets.certificates "name" …) */}}
{{- define "toolhub.certificateVolume" -}}
- name: certificate
  secret:
    secretName: {{ .name }}
    defaultMode: 0440
    items:
      - {key: {{ .secrets.authority }}, path: ca.pem}
      - {key: {{ .secrets.certificate }}, path: side.pem}
      - {key: {{ .secrets.key }}, path: side.key}
{{- end }}

{{- define "toolhub.certificateSettings" -}}
{"TOOLHUB_SANDBOX_TLS_CA": "/certificate/ca.pem", "TOOLHUB_SANDBOX_TLS_CERTIFICATE": "/certificate/side.pem", "TOOLHUB_SANDBOX_TLS_KEY": "/certificate/side.key"}
{{- end }}
