{{/*
The engine of a node, as a worker holds it today. Nothing else in the chart mounts anything of a node: when sandbox hosts get a daemon
of their own, this file goes to that, and workers keep none of it.
*/}}
{{- define "toolhub.engineVolumes" -}}
- {name: engine, hostPath: {path: {{ .socket }}, type: Socket}}
- {name: run, hostPath: {path: {{ .runDir }}, type: Directory}}
- {name: dependencies, hostPath: {path: {{ .dependencyDir }}, type: Directory}}
{{- end }}

{{- define "toolhub.engineMounts" -}}
- {name: engine, mountPath: /var/run/docker.sock}
- {name: run, mountPath: {{ .runDir }}}
- {name: dependencies, mountPath: {{ .dependencyDir }}}
{{- end }}
