import { createHash } from 'node:crypto'
import { mkdir, open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure, invalidValue } from '../../failure.ts'
import { partsOf } from '../gguf-parts.ts'
import { insidePath } from './layout.ts'
import type { Pulled, PullTools } from './pull.ts'
import { readRemoteHeader } from './remote-recognition.ts'
import { defaultRetryRules, type HubFetch, openDownload } from './requests.ts'
import { download, requireSpace } from './transfer.ts'

/**
 * Downloads a GGUF file from any URL into `folder`, or all parts of a model in parts. An interrupted download is resumed
 * like a download from a hub, as long as the server reports the same version of the file (ETag, or date and length).
 * There is no checksum: the content is only as trustworthy as the connection.
 * Rejects with Failure, or with the reason of `signal`.
 */
export async function pullAddress(
  url: string,
  folder: string,
  { hub, signal, onEvent, retryRules = defaultRetryRules, preview }: PullTools,
): Promise<Pulled> {
  refusePassword(url)
  const parts = partUrls(url)
  // The token of the hub must not be sent to other servers.
  const target = new URL(url)
  const { ask, first } = openDownload({
    target,
    hub: { ...hub, token: undefined, offline: false },
    repository: target.pathname,
    retryRules,
    signal,
  })
  const tools = { ask, retryRules, signal, onEvent }
  onEvent({ event: 'connect', host: target.host, what: nameOf(url) })
  await mkdir(folder, { recursive: true })
  const found = []
  for (const part of parts) {
    const about = await first(() => describe(part, ask))
    const key = createHash('sha256').update(`${part}\n${about.version}`).digest('hex').slice(0, 16)
    const path = join(folder, nameOf(part))
    const size = (await stat(path).catch(() => null))?.size
    const present = size !== undefined && (await isGguf(path))
    if (present && size !== about.size)
      throw new Failure(
        'conflict',
        `The file '${path}' exists with another size. Move it away, or add it: infer model add ${path}`,
      )
    found.push({
      ...about,
      url: part,
      path,
      file: nameOf(part),
      incomplete: `${path}.${key}.incomplete`,
      present,
    })
  }
  const missing = found.filter(({ present }) => !present)
  if (preview && missing.length > 0) {
    const files = found.map(({ file, url: part, size }) => ({ name: file, url: part, size }))
    const header = await readRemoteHeader(files, tools)
    if (header)
      await preview({
        header,
        path: found[0]!.path,
        repository: null,
        bytes: bytesOf(missing),
        totalBytes: bytesOf(found),
      })
  }
  onEvent({
    event: 'plan',
    source: url,
    commit: null,
    files: found.map(({ file, size, present }) => ({ file, bytes: size, present })),
    bytes: bytesOf(found),
    others: [],
  })
  await requireSpace(folder, missing)
  for (const { path, file, size, present, ...part } of found) {
    // What is no model is left from a download that went wrong, such as the page of a login.
    if (!present && !(await isGguf(path).catch(() => true))) await rm(path, { force: true })
    await download({ ...part, path, size, name: file, lock: `${path}.lock`, hash: null }, tools)
    if (!(await isGguf(path))) {
      await rm(path, { force: true })
      throw invalidValue(`What ${target.host} sent as ${file} is no GGUF file; it was deleted. Check the address.`)
    }
    onEvent({ event: 'file', file, path, bytes: size, present })
  }
  return {
    kind: 'gguf',
    path: found[0]!.path,
    files: found.map(({ file, path, size, present }) => ({ file, path, bytes: size, present })),
    others: [],
    commit: null,
    repository: null,
  }
}

/** Whether the file begins like a GGUF file. */
async function isGguf(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
    return bytesRead === 4 && buffer.toString('latin1') === 'GGUF'
  } finally {
    await file.close()
  }
}

const bytesOf = (files: readonly { size: number }[]): number => files.reduce((sum, { size }) => sum + size, 0)

/** Resolves with the size and version of the file at a URL, from an answer with one byte. */
async function describe(url: string, ask: HubFetch) {
  const { response, done } = await ask(url, { range: 'bytes=0-0' })
  done()
  await response.body?.cancel()
  const header = (name: string) => response.headers.get(name)
  const size = Number(/\/(\d+)$/.exec(header('content-range') ?? '')?.[1] ?? header('content-length') ?? Number.NaN)
  if (!Number.isSafeInteger(size) || size <= 0)
    throw invalidValue(
      `${new URL(url).host} does not send the size of ${nameOf(url)}. Download it with another program, then add the file.`,
    )
  const etag = header('etag')
  // A weak ETag does not guarantee the same bytes.
  const strong = etag !== null && !etag.startsWith('W/') ? etag : null
  return { size, etag: strong, version: `${strong ?? header('last-modified') ?? ''} ${size}` }
}

/** Refuses URLs with a password: it would not be sent, and every message would repeat it. */
function refusePassword(url: string): void {
  const { username, password, host } = new URL(url)
  if (username !== '' || password !== '')
    throw invalidValue(
      `The URL on ${host} contains a user name or a password, which are not sent. Download the file with another program, then add it.`,
    )
}

/** Returns the URLs of all parts of the model. */
function partUrls(url: string): string[] {
  nameOf(url)
  return partsOf(new URL(url).pathname).map(pathname => Object.assign(new URL(url), { pathname }).href)
}

/** Returns the file name at the end of a URL. */
function nameOf(url: string): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? ''
  let name = last
  try {
    name = decodeURIComponent(last)
  } catch {
    // Invalid percent-encoding: the name is used as it is.
  }
  if (!/\.gguf$/i.test(name) || name.includes('/'))
    throw invalidValue(`'${url}' does not end in the name of a .gguf file.`)
  return insidePath(name, url)
}
