{{- define "semel.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}{{ if not (contains "semel" .Release.Name) }}-semel{{ end }}
{{- end }}

{{- define "semel.selector" -}}
app.kubernetes.io/name: semel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "semel.labels" -}}
{{ include "semel.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "semel.refuse" -}}
{{- if not .Values.ledger.existingSecret -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail (printf "replicas is %d and the ledger is SQLite, a file that one node can use: each further pod would repeat effects. Set ledger.existingSecret to a Secret with the address of PostgreSQL, Redis or etcd, or replicas to 1." (int .Values.replicas)) -}}
{{- end -}}
{{- if not .Values.persistence.enabled -}}
{{- fail "the ledger is SQLite and persistence.enabled is false: the ledger would be lost with the pod. Enable it, or set ledger.existingSecret." -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "semel.claim" -}}
accessModes: ["ReadWriteOnce"]
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.persistence.size }}
{{- end }}
