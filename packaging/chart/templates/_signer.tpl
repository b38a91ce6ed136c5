{{/*
Where the keys are that logs are signed with: what the keeper is told, and which keys of its Secret it gets as files. With file the
Secret holds the keys themselves; with token the PIN; with transit the token of OpenBao or Vault, and its authority if it has one.
*/}}
{{- define "toolhub.signerSettings" -}}
{{- $keeper := .Values.keeper }}
TOOLHUB_SIGNER: {{ $keeper.signer }}
{{- if eq $keeper.signer "file" }}
TOOLHUB_SIGNING_KEY_FILE: /signing/keys.json
{{- else if eq $keeper.signer "token" }}
TOOLHUB_SIGNING_PKCS11_URI: {{ printf "%s&pin-source=file:/signing/pin" (required "keeper.token: the signer token needs the URI of a token" $keeper.token) | quote }}
{{- else }}
TOOLHUB_SIGNING_TRANSIT_URL: {{ required "keeper.transit.url: the signer transit needs the address of the engine" $keeper.transit.url | quote }}
TOOLHUB_SIGNING_TRANSIT_PREFIX: {{ $keeper.transit.prefix | quote }}
TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE: /signing/token
{{- if .Values.secrets.signing.transitAuthority }}
TOOLHUB_SIGNING_TRANSIT_CA: /signing/ca.pem
{{- end }}
{{- end }}
{{- end }}

{{- define "toolhub.signerFiles" -}}
{{- $secret := .Values.secrets.signing }}
{{- if eq .Values.keeper.signer "file" }}
- {key: {{ $secret.file }}, path: keys.json}
{{- else if eq .Values.keeper.signer "token" }}
- {key: {{ $secret.pin }}, path: pin}
{{- else }}
- {key: {{ $secret.transitToken }}, path: token}
{{- with $secret.transitAuthority }}
- {key: {{ . }}, path: ca.pem}
{{- end }}
{{- end }}
{{- end }}
