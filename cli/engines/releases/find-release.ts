import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { Failure, invalidValue } from '../../../core/failure.ts'
import {
  defaultRetryRules,
  type HubFetch,
  hubUnreachable,
  openDownload,
  type RetryRules,
} from '../../../core/models/hub/requests.ts'
import { type HubSettings, withoutLogin } from '../../../core/models/hub/settings.ts'
import { type ReleaseKind, releaseName } from './release-kinds.ts'

/** Where releases come from. */
export interface ReleaseSource {
  /** The address of a mirror with the paths of GitHub and of its API, without a slash at its end; undefined for GitHub. */
  mirror: string | undefined
  /** For the proxy, and whether the network may be used. */
  hub: HubSettings
  retryRules?: RetryRules
}

export interface ReleaseFile {
  name: string
  bytes: number
  /** What the release publishes; null where it publishes none. */
  sha256: string | null
  url: string
}

/** A release that has programs. */
export interface Release {
  version: string
  /** The release that points to it, such as v0.5.0; null without one. */
  pointedBy: string | null
  files: readonly ReleaseFile[]
}

const api = 'https://api.github.com'
/** Bytes. A description of a release with 40 files has about 100 kB. */
const maxBytes = 16 << 20

const Listing = z.object({
  tag_name: z.string().regex(releaseName),
  assets: z.array(
    z.object({
      // What is no plain name must not become a path.
      name: z.string().regex(/^[\w.+-]{1,200}$/),
      size: z.int().nonnegative(),
      digest: z.string().nullish(),
      browser_download_url: z.url(),
    }),
  ),
})
type Listing = z.output<typeof Listing>

/** The file of a folder of --download-only that describes the release. */
const listingName = ({ name }: Pick<ReleaseKind, 'name'>): string => `${name}-release.json`

/** The host from which a release comes, for messages. */
export const hostOf = ({ mirror }: ReleaseSource): string => new URL(mirror ?? 'https://github.com').host

/**
 * Asks for a release by its name, or for the latest. A release that only points to another one is followed. Rejects with
 * Failure: `model_not_found` if there is no such release, and those of a download.
 */
export async function findRelease(
  kind: ReleaseKind,
  name: string | undefined,
  source: ReleaseSource,
  signal: AbortSignal,
): Promise<Release> {
  const retryRules = source.retryRules ?? defaultRetryRules
  const base = source.mirror ?? api
  const { ask, first } = openReleaseDownload(kind, new URL(base), source, signal)
  const describe = async (tag: string | undefined): Promise<Listing> => {
    const path = tag === undefined ? 'latest' : `tags/${encodeURIComponent(tag)}`
    const address = `${base}/repos/${kind.repository}/releases/${path}`
    const text = await readText(address, ask).catch((thrown: unknown) => {
      if (!(thrown instanceof Failure && thrown.code === 'model_not_found')) throw thrown
      throw new Failure(
        'model_not_found',
        `${new URL(base).host} has no ${tag === undefined ? 'release' : `release '${tag}'`} of ${kind.repository}. ${source.mirror === undefined ? `See: https://github.com/${kind.repository}/releases` : 'A mirror needs the paths of GitHub and of its API: see infer help engine-releases'}`,
      )
    })
    return parse(text, new URL(base).host)
  }
  const listing = await first(() => describe(name))
  const release = releaseOf(kind, listing, source)
  const pointer = kind.pointer && release.files.find(one => one.name === kind.pointer)
  if (!pointer || release.files.some(one => kind.build(one.name))) return release
  const tools = openReleaseDownload(kind, new URL(pointer.url), { ...source, retryRules }, signal)
  const tag = (await tools.first(() => readText(pointer.url, tools.ask))).trim()
  if (!releaseName.test(tag))
    throw invalidValue(`${pointer.name} of ${kind.repository} ${name ?? ''} names no release.`)
  return { ...releaseOf(kind, await describe(tag), source), pointedBy: release.version }
}

/** Opens the requests for a release. A token of the model hub is sent to none of them. */
export function openReleaseDownload(
  kind: ReleaseKind,
  target: URL,
  { hub, retryRules = defaultRetryRules }: ReleaseSource,
  signal: AbortSignal,
): ReturnType<typeof openDownload> {
  const { ask, first } = openDownload({
    target,
    hub: { ...hub, token: undefined },
    repository: kind.repository,
    retryRules,
    signal,
    instead: `Or run infer engine setup ${kind.name} with --download-only DIR on another machine, and with --from DIR here.`,
  })
  const explained: HubFetch = async (address, headers) => {
    try {
      return await ask(address, headers)
    } catch (thrown) {
      if (thrown instanceof Failure && /rate limit/i.test(thrown.message))
        throw new Failure(
          'no_capacity',
          `${target.host} has got too many requests from this network within an hour. Try again in an hour, or use a mirror or a folder with --from.`,
          { cause: thrown },
        )
      if (!(thrown instanceof Failure && thrown.code === 'invalid_api_key')) throw thrown
      throw invalidValue(
        `${target.host} asks for a login, which infer does not send. Use another mirror, or a folder with --from.`,
        { cause: thrown },
      )
    }
  }
  return { ask: explained, first }
}

/** Reads the release of a folder that --download-only has filled. Throws Failure `invalid_value`. */
export function readRelease(kind: ReleaseKind, folder: string): Release {
  const path = join(folder, listingName(kind))
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalidValue(
      `${path} cannot be read: ${(cause as Error).message}. Fill the folder on a machine with a network: infer engine setup ${kind.name} --download-only DIR`,
      { cause },
    )
  }
  return releaseOf(kind, parse(text, path), { mirror: undefined })
}

/** The description of a release for such a folder: the name and the text of its file. */
export function describeRelease(kind: ReleaseKind, { version, files }: Release): { name: string; text: string } {
  const assets = files.map(({ name, bytes, sha256, url }) => ({
    name,
    size: bytes,
    digest: sha256 === null ? null : `sha256:${sha256}`,
    browser_download_url: url,
  }))
  return { name: listingName(kind), text: `${JSON.stringify({ tag_name: version, assets }, null, 2)}\n` }
}

function parse(text: string, from: string): Listing {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const parsed = Listing.safeParse(value)
  if (parsed.success) return parsed.data
  throw invalidValue(
    `${from} does not describe a release as GitHub does: ${parsed.error.issues[0]!.path.join('.') || 'it'} is wrong. Check the address.`,
  )
}

const releaseOf = (
  { repository }: ReleaseKind,
  { tag_name, assets }: Listing,
  { mirror }: Pick<ReleaseSource, 'mirror'>,
): Release => ({
  version: tag_name,
  pointedBy: null,
  files: assets.map(({ name, size, digest, browser_download_url }) => ({
    name,
    bytes: size,
    sha256: /^sha256:([0-9a-f]{64})$/.exec(digest ?? '')?.[1] ?? null,
    url:
      mirror === undefined
        ? browser_download_url
        : `${mirror}/${repository}/releases/download/${encodeURIComponent(tag_name)}/${encodeURIComponent(name)}`,
  })),
})

async function readText(address: string, ask: HubFetch): Promise<string> {
  const { response, received, done } = await ask(address, { accept: 'application/json, text/plain;q=0.5' })
  const pieces: Uint8Array[] = []
  let bytes = 0
  try {
    // The body of an answer in Node is an async iterable.
    for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      received()
      bytes += piece.length
      if (bytes > maxBytes)
        throw invalidValue(`${withoutLogin(address)} answers with more than 16 MiB. Check the address.`)
      pieces.push(piece)
    }
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : hubUnreachable(new URL(address), thrown)
  } finally {
    done()
  }
  return Buffer.concat(pieces, bytes).toString('utf8')
}
