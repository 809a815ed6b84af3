import { listFiles, modelInfo } from '@huggingface/hub'
import { Failure } from '../../failure.ts'
import type { HubFile } from './choose.ts'
import { insidePath } from './layout.ts'
import type { HubReference } from './reference.ts'
import { type HubFetch, unreachable } from './requests.ts'

/** A repository with more files than this is no model. */
const maxFiles = 20_000

/**
 * Which commit a reference means and what files it has. Throws Failure: the refusals of `openRequests`, and
 * `invalid_value` for a list that cannot be true or that would lead out of its folder.
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
      // Read here, while the timer runs.
      return new Response(await response.arrayBuffer(), { status, headers })
    } catch (thrown) {
      throw thrown instanceof Failure ? thrown : unreachable(new URL(url), thrown)
    } finally {
      done()
    }
  }
  const strange = (what: string) =>
    new Failure('invalid_value', `${endpoint} says of ${repository} ${what}. Is HF_ENDPOINT a hub?`)
  const { sha: commit } = await modelInfo({
    name: repository,
    revision,
    hubUrl: endpoint,
    additionalFields: ['sha'],
    fetch,
  }).catch(unless(strange('nothing that can be understood')))
  if (typeof commit !== 'string' || !/^[0-9a-f]{40}$/.test(commit)) throw strange('no commit')

  const files: HubFile[] = []
  const entries = listFiles({ repo: repository, revision: commit, recursive: true, hubUrl: endpoint, fetch })
  try {
    for await (const { type, path, size, oid, lfs } of entries) {
      if (type !== 'file') continue
      const hash: HubFile['hash'] = lfs
        ? { kind: 'sha256', hex: lfs.oid.replace(/^sha256:/, '') }
        : { kind: 'git', hex: oid ?? '' }
      const bytes = lfs?.size ?? size
      if (!/^[0-9a-f]+$/.test(hash.hex) || hash.hex.length !== (lfs ? 64 : 40)) throw strange(`no hash of '${path}'`)
      if (!Number.isSafeInteger(bytes) || bytes < 0) throw strange(`no size of '${path}'`)
      files.push({ path: insidePath(path, repository), size: bytes, hash })
      if (files.length > maxFiles) throw strange(`that it has more than ${maxFiles} files`)
    }
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : strange('nothing that can be understood')
  }
  return { commit, files }
}

/** Passes on what is a Failure already; anything else, of an answer that is no answer, becomes this one. */
const unless =
  (failure: Failure) =>
  (thrown: unknown): never => {
    throw thrown instanceof Failure ? thrown : failure
  }
