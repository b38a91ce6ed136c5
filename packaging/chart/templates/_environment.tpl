{{/* Settings of a process as text: Helm reads every number as a float. */}}
{{- define "toolhub.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- define "toolhub.secret" -}}
- name: {{ index . 0 }}
  valueFrom: {secretKeyRef: {name: {{ index . 1 }}, key: {{ index . 2 }}{{ if eq (len .) 4 }}, optional: true{{ end }}}}
{{- end }}

{{/*
What every process is told. (dict "root" $ "role" "web" "settings" (dict …)): settings of the chart come last, so that nobody sets them
otherwise; the role decides which secrets it gets beside those of all.
*/}}
{{- define "toolhub.environment" -}}
{{- $root := .root }}
{{- $values := .root.Values }}
{{- $secrets := $values.secrets }}
{{- $decided := dict
  "TOOLHUB_DATA_DIR" "/data"
  "TOOLHUB_PUBLIC_URL" $values.publicUrl
  "TOOLHUB_SIGNING_KEY_FILE" ""
}}
{{- if eq .role "web" }}
{{- $host := (urlParse $values.publicUrl).hostname }}
{{- $_ := set $decided "TOOLHUB_ALLOWED_HOSTS" (join "," (concat (list "localhost" "$(POD_IP)" $host) $values.allowedHosts)) }}
- name: POD_IP  # Prometheus asks by it
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- else if ne .role "init" }}
{{- $_ := set $decided "TOOLHUB_PROBE_BIND" "0.0.0.0:8001" }}
{{- if $values.metrics.enabled }}{{ $_ := set $decided "TOOLHUB_METRICS_BIND" "0.0.0.0:9464" }}{{ end }}
{{- end }}
{{- range $name, $value := mergeOverwrite (dict "TOOLHUB_LOG_FORMAT" "json" "TOOLHUB_KEYSTORE" "env") $values.settings .settings $decided .decided }}
- {name: {{ $name }}, value: {{ include "toolhub.text" $value | quote }}}
{{- end }}
{{- if eq .role "init" }}
{{ include "toolhub.secret" (list "TOOLHUB_DATABASE_URL" $secrets.owner.name $secrets.owner.url) }}
{{ include "toolhub.secret" (list "TOOLHUB_HUB_ROLE_PASSWORD" $secrets.owner.name $secrets.owner.hubRolePassword) }}
{{ include "toolhub.secret" (list "TOOLHUB_OWNER_PASSWORD" $secrets.owner.name $secrets.owner.ownerPassword "optional") }}
{{- else }}
{{ include "toolhub.secret" (list "TOOLHUB_DATABASE_URL" $secrets.database.name $secrets.database.url) }}
{{- end }}
{{- with $secrets.redis.name }}
{{ include "toolhub.secret" (list "TOOLHUB_REDIS_URL" . $secrets.redis.url) }}
{{- end }}
{{ include "toolhub.secret" (list "TOOLHUB_SECRET_KEY" $secrets.keys.name $secrets.keys.secretKey) }}
{{ include "toolhub.secret" (list "TOOLHUB_MASTER_KEYS" $secrets.keys.name $secrets.keys.masterKeys "optional") }}
{{- if and $values.metrics.enabled (ne .role "init") }}
{{ include "toolhub.secret" (list "TOOLHUB_METRICS_TOKEN" $secrets.metrics.name $secrets.metrics.token) }}
{{- end }}
{{- with $secrets.more.name }}
{{ include "toolhub.secret" (list "TOOLHUB_KEY_SERVICE_TOKEN" . $secrets.more.keyServiceToken "optional") }}
{{- if has $.role (list "web" "worker" "upkeep") }}
{{ include "toolhub.secret" (list "TOOLHUB_EMAIL_URL" . $secrets.more.emailUrl "optional") }}
{{- end }}
{{- if has $.role (list "web" "worker") }}
{{ include "toolhub.secret" (list "TOOLHUB_PACKAGE_INDEX" . $secrets.more.packageIndex "optional") }}
{{- end }}
{{- if eq $.role "web" }}
{{ include "toolhub.secret" (list "TOOLHUB_OIDC_CLIENT_SECRET" . $secrets.more.oidcClientSecret "optional") }}
{{- end }}
{{- end }}
{{- end }}
