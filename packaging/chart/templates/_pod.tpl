{{/* What all pods have in common. (dict "root" $ "component" "web") */}}
{{- define "toolhub.podLabels" -}}
{{ include "toolhub.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "toolhub.podSelector" -}}
{{ include "toolhub.selector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* (dict "root" $ "groups" (list …)): further groups of the process, where it needs one of the node's. */}}
{{- define "toolhub.podSpec" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
shareProcessNamespace: true  # what is process 1 then ends orphans of a process, as an init does
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  {{- with .groups }}
  supplementalGroups: {{ toJson . }}
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "toolhub.container" -}}
image: {{ include "toolhub.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Folders that a process may write to: nothing in them outlives the pod. Its argument: room for data. */}}
{{- define "toolhub.scratchVolumes" -}}
- {name: tmp, emptyDir: {sizeLimit: 1Gi}}
- {name: data, emptyDir: {sizeLimit: {{ . }}}}
{{- end }}

{{- define "toolhub.scratchMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: /data}
{{- end }}

{{/* Of worker, upkeep and keeper, which serve no requests. */}}
{{- define "toolhub.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: probe}
  periodSeconds: 5
  failureThreshold: 36
livenessProbe:
  httpGet: {path: /healthz, port: probe}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: probe}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{- define "toolhub.ports" -}}
- {name: probe, containerPort: 8001}
{{- if .Values.metrics.enabled }}
- {name: metrics, containerPort: 9464}
{{- end }}
{{- end }}

{{/* Pods of one role on different nodes, where there are any. */}}
{{- define "toolhub.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "toolhub.podSelector" . | nindent 8 }}
{{- end }}

{{- define "toolhub.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}
