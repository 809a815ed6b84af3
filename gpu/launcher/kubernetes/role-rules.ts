import { leaderWorkerSets } from './pod-manifest.ts'

/** A rule of a role, as Kubernetes writes it. */
export interface RoleRule {
  apiGroups: readonly string[]
  resources: readonly string[]
  verbs: readonly string[]
}

/** What a server may do in the namespace of its pods for models on one node: all that it does there. */
export const namespaceRules: readonly RoleRule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
]
/** What it may do there besides for models that span nodes. */
export const spanningRules: readonly RoleRule[] = [
  { apiGroups: [leaderWorkerSets.group], resources: [leaderWorkerSets.resource], verbs: ['create', 'get', 'delete'] },
]
/** What it may do there for their deadlines, without which they keep their GPUs if the server is removed. */
export const deadlineRules: readonly RoleRule[] = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'patch', 'delete'] },
  // Sets get their Job later, too.
  { apiGroups: [leaderWorkerSets.group], resources: [leaderWorkerSets.resource], verbs: ['patch'] },
]
/** What it may do in the whole cluster, to know which GPUs are free. */
export const clusterRules: readonly RoleRule[] = [{ apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list'] }]
