import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { listenAddress } from '../../core/listen-address.ts'
import { findPortHolder } from '../../core/port-holder.ts'
import { runningServer } from '../client/find-server.ts'
import { send } from '../client/http.ts'
import { type Finding, warning } from './finding.ts'
import type { AddressFacts, DirectoryFacts, MasterKeyFacts } from './installation.ts'

/** Measurements for `infer doctor`. They change nothing. */

export function directoryFacts(path: string): DirectoryFacts {
  const user = process.getuid?.() ?? 0
  if (!existsSync(path)) return { path, mode: undefined, owner: user, user, fileSystem: 0, readable: [] }
  const { mode, uid } = statSync(path)
  const readable = ['master-key', 'root-token', 'infer.db'].filter(file => {
    const filePath = join(path, file)
    return existsSync(filePath) && (statSync(filePath).mode & 0o077) !== 0
  })
  return { path, mode: mode & 0o777, owner: uid, user, fileSystem: statfsSync(path).type, readable }
}

/** Returns the bytes that this user may write where the directory is or will be created. */
export function freeBytes(path: string): number {
  let existing = path
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing)
  const { bavail, bsize } = statfsSync(existing)
  return bavail * bsize
}

export async function addressFacts(listen: string, dataDir: string): Promise<AddressFacts> {
  const server = runningServer(dataDir)
  if (server) {
    const { url, pid, listen: socket, certificate } = server
    const signal = AbortSignal.timeout(2_000)
    const ready = await send({ method: 'GET', url: `${url}/readyz`, token: undefined, signal, certificate }).then(
      answer => answer.resume().statusCode === 200,
      () => false,
    )
    return { listen, running: { url, pid, listen: socket, ready }, refusal: undefined }
  }
  const refusal = await tryToListen(listen)
  const holder = refusal === 'EADDRINUSE' ? findPortHolder(Number(listen.split(':').at(-1))) : undefined
  return { listen, running: undefined, refusal, holder }
}

function tryToListen(listen: string): Promise<string | undefined> {
  const address = listenAddress(listen)
  if (!address) return Promise.resolve('it is not host:port')
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', (cause: NodeJS.ErrnoException) => resolve(cause.code ?? cause.message))
    server.listen(address, () => server.close(() => resolve(undefined)))
  })
}

/** Returns the glibc version of this process; undefined on musl. */
export function glibcVersion(): string | undefined {
  // Without this the report resolves the host names of all peers, which takes seconds.
  Object.assign(process.report, { excludeNetwork: true })
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } }
  return header?.glibcVersionRuntime
}

/** Returns the text of a file in /proc or /sys; undefined if it does not exist. */
export function kernelText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Finds where the master key comes from. An empty INFER_MASTER_KEY_FILE counts as unset. */
export const masterKeyFacts = (
  dataDir: string,
  { INFER_MASTER_KEY: key, INFER_MASTER_KEY_FILE: file }: Record<string, string | undefined>,
): MasterKeyFacts => ({
  dataDir,
  inEnvironment: key !== undefined,
  file: file === '' ? undefined : file,
  mode: file ? statSync(file, { throwIfNoEntry: false })?.mode : undefined,
})

interface RemoteServerFacts {
  /** The value of INFER_URL. */
  url: string
  /** The status of its response to /readyz; undefined without a response. */
  status: number | undefined
  /** Why there was no response. */
  fault?: string
}

const timeoutMs = 3_000

/** Asks the server at INFER_URL whether it is ready. Never rejects. */
export async function remoteServerFacts(url: string): Promise<RemoteServerFacts> {
  // Users paste the base URL of an OpenAI client.
  const base = url.replace(/(\/std)?\/v1$/, '')
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await send({ method: 'GET', url: `${base}/readyz`, token: undefined, signal })
    return { url, status: answer.resume().statusCode }
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException
    return { url, status: undefined, fault: code ?? message }
  }
}

/** Reports that INFER_URL is set, because all other checks examine the machine on which the command runs. Pure. */
export function checkRemoteServer({ url, status, fault }: RemoteServerFacts): Finding {
  const state =
    status === 200 ? 'is ready' : status === undefined ? `cannot be reached (${fault})` : `is not ready (${status})`
  return warning(
    'INFER_URL',
    `the server at ${url} ${state}; all checks below are about this machine, not about that server`,
    "Run 'infer doctor' on that machine to check it, or unset INFER_URL. 'infer status' shows that server.",
  )
}
