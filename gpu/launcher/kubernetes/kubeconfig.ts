import { dirname, resolve } from 'node:path'
import { z } from 'zod'

/** A text that stands in the file, or in another one. */
export type Material = { data: string } | { file: string }

/** How a user of a cluster proves who it is. */
export interface ClusterUser {
  token?: Material
  certificate?: Material
  key?: Material
  /** A program that prints credentials: see `exec-credentials.ts`. */
  exec?: { command: string; args: readonly string[]; env: Readonly<Record<string, string>>; apiVersion: string }
}

/** A cluster and its user, as a kubeconfig names them. */
export interface ClusterSettings {
  /** Origin, and perhaps a path: `https://10.0.0.1:6443`. */
  server: string
  authority?: Material
  serverName?: string
  namespace?: string
  user: ClusterUser
}

const text = z.string().min(1)
const named = <Shape extends z.ZodType>(key: string, shape: Shape) =>
  z.array(z.looseObject({ name: text, [key]: shape })).nullish()

const Cluster = z.looseObject({
  server: text,
  'certificate-authority': text.optional(),
  'certificate-authority-data': text.optional(),
  'tls-server-name': text.optional(),
  'insecure-skip-tls-verify': z.boolean().optional(),
  'proxy-url': text.optional(),
})
const User = z.looseObject({
  token: text.optional(),
  tokenFile: text.optional(),
  'client-certificate': text.optional(),
  'client-certificate-data': text.optional(),
  'client-key': text.optional(),
  'client-key-data': text.optional(),
  username: text.optional(),
  'auth-provider': z.unknown().optional(),
  exec: z
    .looseObject({
      command: text,
      apiVersion: text,
      args: z.array(z.string()).nullish(),
      env: z.array(z.looseObject({ name: text, value: z.string() })).nullish(),
    })
    .optional(),
})
const Context = z.looseObject({ cluster: text, user: text.optional(), namespace: text.optional() })
const Kubeconfig = z.looseObject({
  'current-context': z.string().nullish(),
  clusters: named('cluster', Cluster),
  users: named('user', User),
  contexts: named('context', Context),
})

/**
 * Reads a kubeconfig: `value` is the parsed file at `path`, `context` the name of a context, by default the current one.
 * Throws an Error with a sentence for what is missing or not supported. Pure.
 */
export function clusterSettingsIn(value: unknown, path: string, context?: string): ClusterSettings {
  const parsed = Kubeconfig.safeParse(value)
  if (!parsed.success)
    throw new Error(`${path} is no kubeconfig: '${parsed.error.issues[0]!.path.join('.')}' is missing or wrong.`)
  const { contexts, clusters, users, 'current-context': current } = parsed.data
  const name = context ?? current ?? ''
  if (name === '') throw new Error(`${path} has no current context. Set 'context' of the pool.`)
  const chosen = find(contexts, 'context', name) as z.output<typeof Context> | undefined
  if (!chosen) throw new Error(`${path} has no context '${name}'.`)
  const cluster = find(clusters, 'cluster', chosen.cluster) as z.output<typeof Cluster> | undefined
  if (!cluster) throw new Error(`${path} has no cluster '${chosen.cluster}', which its context '${name}' names.`)
  const user = chosen.user === undefined ? {} : (find(users, 'user', chosen.user) as z.output<typeof User> | undefined)
  if (!user) throw new Error(`${path} has no user '${chosen.user}', which its context '${name}' names.`)
  if (!/^https:\/\/[^/]/.test(cluster.server))
    throw new Error(`The cluster '${chosen.cluster}' of ${path} has no https address: ${cluster.server}.`)
  if (cluster['insecure-skip-tls-verify'])
    throw new Error(`${path} says insecure-skip-tls-verify, by which anybody could read keys. Name the authority.`)
  if (cluster['proxy-url'] !== undefined) throw new Error(`${path} says proxy-url, which infer does not support.`)
  const material = materialIn(dirname(path))
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...material('authority', cluster['certificate-authority-data'], cluster['certificate-authority']),
    ...(cluster['tls-server-name'] && { serverName: cluster['tls-server-name'] }),
    ...(chosen.namespace && { namespace: chosen.namespace }),
    user: userIn(user, chosen.user ?? '', path),
  }
}

function userIn(user: z.output<typeof User>, name: string, path: string): ClusterUser {
  const material = materialIn(dirname(path))
  if (user.username !== undefined || user['auth-provider'] != null)
    throw new Error(
      `The user '${name}' of ${path} has a way of authentication that Kubernetes has removed. Use a token, a certificate or exec.`,
    )
  const { exec } = user
  return {
    ...(user.token !== undefined
      ? { token: { data: user.token } }
      : user.tokenFile !== undefined
        ? { token: { file: resolve(dirname(path), user.tokenFile) } }
        : {}),
    ...material('certificate', user['client-certificate-data'], user['client-certificate']),
    ...material('key', user['client-key-data'], user['client-key']),
    ...(exec && {
      exec: {
        // A name is looked for on PATH; a path is relative to the file.
        command: exec.command.includes('/') ? resolve(dirname(path), exec.command) : exec.command,
        args: exec.args ?? [],
        env: Object.fromEntries((exec.env ?? []).map(one => [one.name, one.value])),
        apiVersion: exec.apiVersion,
      },
    }),
  }
}

const find = (all: readonly Record<string, unknown>[] | null | undefined, key: string, name: string): unknown =>
  all?.find(one => one.name === name)?.[key]

/** Data in the file counts before the name of another one. */
const materialIn =
  (folder: string) =>
  <Name extends string>(name: Name, data: string | undefined, file: string | undefined) =>
    (data !== undefined
      ? { [name]: { data: Buffer.from(data, 'base64').toString('utf8') } }
      : file !== undefined
        ? { [name]: { file: resolve(folder, file) } }
        : {}) as Partial<Record<Name, Material>>
