import { manifestObjects } from '../../../../cli/kubernetes/server-manifest.ts'
import type { RoleRule } from '../../../../gpu/launcher/kubernetes/role-rules.ts'

/** A call as Kubernetes authorizes it. `namespace`: null for all of them, and for what is in none. */
export interface Action {
  group: string
  /** `pods`, `pods/log`. */
  resource: string
  verb: string
  namespace: string | null
}

interface Role {
  kind: string
  rules: readonly RoleRule[]
}

/** What Kubernetes authorizes a request by; undefined for a path that names no resource. */
export function actionOf(method: string, url: URL): Action | undefined {
  const [, group = '', namespace, resource, name, subresource] =
    /^\/(?:api\/v1|apis\/([^/]+)\/v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(
      url.pathname,
    ) ?? []
  if (resource === undefined) return undefined
  const whole = url.searchParams.get('watch') === '1' ? 'watch' : 'list'
  const verbs: Record<string, string> = {
    GET: name === undefined ? whole : 'get',
    POST: 'create',
    PATCH: 'patch',
    PUT: 'update',
    DELETE: name === undefined ? 'deletecollection' : 'delete',
  }
  return {
    group,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    verb: verbs[method]!,
    namespace: namespace ?? null,
  }
}

/** The rights of the service account in what `infer kubernetes manifest` prints, and which of them were used. */
export function openRole(namespace: string) {
  const objects = manifestObjects({ namespace, image: undefined, storage: '1Gi' }) as Role[]
  const rules = objects.flatMap(({ kind, rules: of }) =>
    kind === 'Role' || kind === 'ClusterRole' ? of.map(rule => ({ rule, isOfCluster: kind === 'ClusterRole' })) : [],
  )
  const unused = new Set(
    rules.flatMap(({ rule, isOfCluster }) =>
      rule.resources.flatMap(resource => rule.verbs.map(verb => textOf(isOfCluster, verb, resource))),
    ),
  )
  const refused = new Set<string>()
  const withdrawn = new Set<string>()
  /** The rule of the namespace counts before that of the cluster. */
  const ruleFor = (action: Action) =>
    rules.find(
      ({ rule, isOfCluster }) =>
        (isOfCluster || action.namespace === namespace) &&
        rule.apiGroups.includes(action.group) &&
        rule.resources.includes(action.resource) &&
        rule.verbs.includes(action.verb) &&
        !withdrawn.has(textOf(isOfCluster, action.verb, action.resource)),
    )
  return {
    /** What no call has needed, and which calls were refused: `list nodes in the cluster`. */
    unused,
    refused,
    /** Rights that the test has taken away. */
    withdrawn,
    allows: (action: Action): boolean => ruleFor(action) !== undefined,
    /** Counts a call; false if it is not allowed. */
    admit(action: Action): boolean {
      const found = ruleFor(action)
      if (found) unused.delete(textOf(found.isOfCluster, action.verb, action.resource))
      else refused.add(textOf(action.namespace !== namespace, action.verb, action.resource))
      return found !== undefined
    },
  }
}
export type TestRole = ReturnType<typeof openRole>

const textOf = (isOfCluster: boolean, verb: string, resource: string): string =>
  `${verb} ${resource}${isOfCluster ? ' in the cluster' : ''}`
