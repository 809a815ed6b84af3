import { execa } from 'execa'
import { jsonOf } from '../../../core/json.ts'
import type { ClusterUser } from './kubeconfig.ts'

/** What a call is authenticated by. */
export interface Credentials {
  token?: string
  certificate?: string
  key?: string
  /** When they must be asked for again, epoch milliseconds; absent if there is no such time. */
  expiresAt?: number
}

const limitMs = 20_000

/**
 * Runs the program of a kubeconfig that prints credentials, as `aws`, `gke-gcloud-auth-plugin` and `kubelogin` do. Rejects with
 * a sentence.
 */
export async function runExecPlugin(
  { command, args, env, apiVersion }: NonNullable<ClusterUser['exec']>,
  host: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<Credentials> {
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  const { stdout, stderr, exitCode, code, timedOut } = await execa(command, args, {
    env: { ...host, ...env, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    extendEnv: false,
    stdin: 'ignore',
    timeout: limitMs,
    killSignal: 'SIGKILL',
    cancelSignal: signal,
    reject: false,
  })
  if (exitCode !== 0) {
    const why =
      code === 'ENOENT' ? 'it is not installed here' : timedOut ? 'it has not ended in time' : lastLine(stderr)
    throw new Error(`The program '${command}' gives no credentials for the cluster: ${why || `status ${exitCode}`}.`)
  }
  const found = credentialsIn(stdout)
  if (!found) throw new Error(`The program '${command}' has printed no credentials for the cluster.`)
  return found
}

const lastLine = (words: string): string => words.trim().split('\n').at(-1)!.trim().replace(/\.$/, '')

/** Reads an ExecCredential; undefined if the text is none. */
export function credentialsIn(text: string): Credentials | undefined {
  const { status } = (jsonOf(text) ?? {}) as { status?: Record<string, unknown> }
  const word = (name: string) => (typeof status?.[name] === 'string' ? status[name] : undefined)
  const token = word('token')
  const certificate = word('clientCertificateData')
  const key = word('clientKeyData')
  const expiresAt = Date.parse(word('expirationTimestamp') ?? '')
  if (token === undefined && (certificate === undefined || key === undefined)) return undefined
  return {
    ...(token !== undefined && { token }),
    ...(certificate !== undefined && key !== undefined && { certificate, key }),
    ...(expiresAt > 0 && { expiresAt }),
  }
}
