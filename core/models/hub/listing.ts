import { listFiles, modelInfo } from '@huggingface/hub'
import { Failure, invalidValue } from '../../failure.ts'
import type { HubFile } from './choose.ts'
import { insidePath } from './layout.ts'
import type { HubReference } from './reference.ts'
import { type HubFetch, hubUnreachable } from './requests.ts'

/** A repository with more files than this is not a model. */
const maxFiles = 20_000

/**
 * Resolves with the commit of a reference and its files. Rejects with the Failures of `openRequests`, and with Failure
 * `invalid_value` for an invalid list or a path that leads outside its folder.
 */
export async function listRepository(
  { repository, revision }: HubReference,
  endpoint: string,
  ask: HubFetch,
): Promise<{ commit: string; files: HubFile[] }> {
  const fetch: typeof globalThis.fetch = async input => {
    const url = input instanceof Request ? input.url : String(input)
    const { response, done } = await ask(url)
    const { status, headers } = response
    try {
      // Read before `done`, which stops the timer.
      return new Response(await response.arrayBuffer(), { status, headers })
    } catch (thrown) {
      throw thrown instanceof Failure ? thrown : hubUnreachable(new URL(url), thrown)
    } finally {
      done()
    }
  }
  const invalid = (what: string) =>
    invalidValue(`${endpoint} sent ${what} for ${repository}. Check that HF_ENDPOINT is a hub.`)
  const { sha: commit } = await modelInfo({
    name: repository,
    revision,
    hubUrl: endpoint,
    additionalFields: ['sha'],
    fetch,
  }).catch(unless(invalid('an invalid answer')))
  if (typeof commit !== 'string' || !/^[0-9a-f]{40}$/.test(commit)) throw invalid('no commit')

  const files: HubFile[] = []
  const entries = listFiles({ repo: repository, revision: commit, recursive: true, hubUrl: endpoint, fetch })
  try {
    for await (const { type, path, size, oid, lfs } of entries) {
      if (type !== 'file') continue
      const hash: HubFile['hash'] = lfs
        ? { kind: 'sha256', hex: lfs.oid.replace(/^sha256:/, '') }
        : { kind: 'git', hex: oid ?? '' }
      const bytes = lfs?.size ?? size
      if (!/^[0-9a-f]+$/.test(hash.hex) || hash.hex.length !== (lfs ? 64 : 40)) throw invalid(`no hash of '${path}'`)
      if (!Number.isSafeInteger(bytes) || bytes < 0) throw invalid(`no size of '${path}'`)
      files.push({ path: insidePath(path, repository), size: bytes, hash })
      if (files.length > maxFiles) throw invalid(`a list of more than ${maxFiles} files`)
    }
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : invalid('an invalid answer')
  }
  return { commit, files }
}

/** Rethrows a Failure, and throws this failure for any other error, such as that of an unreadable answer. */
const unless =
  (failure: Failure) =>
  (thrown: unknown): never => {
    throw thrown instanceof Failure ? thrown : failure
  }
