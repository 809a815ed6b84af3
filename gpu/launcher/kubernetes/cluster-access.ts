import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withHome } from '../../../core/base-directory.ts'
import type { KubernetesPool } from '../../../core/models/pools.ts'
import { optionalText } from '../../../core/optional-file.ts'
import { readYaml } from '../../../core/read-yaml.ts'
import { type Credentials, runExecPlugin } from './exec-credentials.ts'
import { type ClusterSettings, clusterSettingsIn, type Material } from './kubeconfig.ts'

/** Where the API server of a cluster is, and who asks it. */
export interface ClusterAccess {
  server: string
  serverName?: string | undefined
  namespace: string
  /** The authority of its certificate, as PEM text; undefined for those of this machine. */
  authority(): Promise<string | undefined>
  /** The credentials of a call. They are read again when they may have changed, and after `refused`. */
  credentials(signal: AbortSignal): Promise<Credentials>
  /** The API server has not accepted the credentials. */
  refused(): void
}

/** Where Kubernetes puts what a pod needs to ask its API server. */
const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Milliseconds for which files are not read again. Tokens of pods are replaced minutes before they end. */
const keptMs = 60_000

/**
 * Finds the cluster of a pool: that of the kubeconfig that the pool names; else that of the pod in which this server runs; else
 * that of the kubeconfig of the user. Rejects with a sentence.
 */
export async function openClusterAccess(
  { kubeconfig, context, namespace }: Pick<KubernetesPool, 'kubeconfig' | 'context' | 'namespace'>,
  host: Readonly<Record<string, string | undefined>>,
  folder: string = accountFolder,
): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: address, KUBERNETES_SERVICE_PORT: port = '443' } = host
  const inPod = kubeconfig === undefined && context === undefined && address !== undefined
  const settings: ClusterSettings = inPod
    ? {
        server: `https://${address.includes(':') ? `[${address}]` : address}:${port}`,
        authority: { file: join(folder, 'ca.crt') },
        namespace: optionalText(join(folder, 'namespace'))?.trim() || 'default',
        user: { token: { file: join(folder, 'token') } },
      }
    : await readKubeconfig(kubeconfig ?? host.KUBECONFIG?.split(':')[0] ?? '~/.kube/config', context, host)
  return accessTo({ ...settings, namespace: namespace ?? settings.namespace ?? 'default' }, host)
}

async function readKubeconfig(
  name: string,
  context: string | undefined,
  host: Readonly<Record<string, string | undefined>>,
): Promise<ClusterSettings> {
  const path = withHome(name, host)
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`The kubeconfig ${path} cannot be read (${cause.code}). Set 'kubeconfig' of the pool.`)
  })
  return clusterSettingsIn(readYaml(text, path).value, path, context)
}

function accessTo(
  { server, serverName, authority, user, namespace }: ClusterSettings & { namespace: string },
  host: Readonly<Record<string, string | undefined>>,
): ClusterAccess {
  let kept: { credentials: Promise<Credentials>; until: number } | undefined

  async function read(signal: AbortSignal): Promise<Credentials> {
    if (user.exec) return await runExecPlugin(user.exec, host, signal)
    const [token, certificate, key] = await Promise.all([user.token, user.certificate, user.key].map(textOf))
    return {
      ...(token !== undefined && { token: token.trim() }),
      ...(certificate !== undefined && key !== undefined && { certificate, key }),
    }
  }

  return {
    server,
    serverName,
    namespace,
    authority: () => textOf(authority),
    async credentials(signal) {
      if (kept && Date.now() < kept.until) return await kept.credentials
      const now = { credentials: read(signal), until: Date.now() + keptMs }
      kept = now
      try {
        const { expiresAt } = await now.credentials
        if (user.exec) now.until = expiresAt === undefined ? Number.POSITIVE_INFINITY : expiresAt - keptMs
      } catch (thrown) {
        if (kept === now) kept = undefined
        throw thrown
      }
      return await now.credentials
    },
    refused() {
      kept = undefined
    },
  }
}

async function textOf(material: Material | undefined): Promise<string | undefined> {
  if (material === undefined) return undefined
  if ('data' in material) return material.data
  return await readFile(material.file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`The credentials of the cluster in ${material.file} cannot be read (${cause.code}).`)
  })
}
