import { Failure, invalidValue } from '../../failure.ts'
import { engineFacts } from '../engine-facts.ts'
import { chooseFiles, type HubFile } from '../hub/choose.ts'
import { listRepository } from '../hub/listing.ts'
import {
  defaultRetryRules,
  type HubFetch,
  hubUnreachable,
  openDownload,
  type RetryRules,
  withRetries,
} from '../hub/requests.ts'
import type { HubSettings } from '../hub/settings.ts'
import type { CatalogBuild, CatalogModel } from './catalog-model.ts'

/** What the hub says about one repository of a catalog model. */
export interface RepositoryCheck {
  model: string
  repository: string
  /** `changed`: a fact of the catalog differs from the hub. `missing`: no such repository or file. */
  result: 'confirmed' | 'changed' | 'missing'
  /** What differs, and what the catalog does not know. */
  notes: string[]
}

/** The hub's names of licenses, where they are not the catalog's name in lower case. */
const hubLicenses: Readonly<Record<string, string>> = {
  'Llama 3.1 Community License': 'llama3.1',
  'Llama 3.2 Community License': 'llama3.2',
  'Llama 3.3 Community License': 'llama3.3',
  'Gemma Terms of Use': 'gemma',
  'CreativeML OpenRAIL-M': 'creativeml-openrail-m',
  'CreativeML OpenRAIL++-M': 'openrail++',
}

/**
 * Checks models of the catalog against the hub: repositories, files, sizes, hashes, licenses. Yields one result for each
 * repository. Throws Failure when the hub cannot be reached; what `signal` was aborted with, when it was.
 */
export async function* verifyCatalog(
  models: readonly CatalogModel[],
  { hub, signal, retryRules = defaultRetryRules }: { hub: HubSettings; signal: AbortSignal; retryRules?: RetryRules },
): AsyncGenerator<RepositoryCheck> {
  let isReached = false
  for (const model of models)
    for (const repository of new Set(model.builds.flatMap(build => build.repository ?? []))) {
      const { ask, first } = openDownload({ target: new URL(hub.endpoint), hub, repository, retryRules, signal })
      const read = () => readRepository(repository, hub.endpoint, ask)
      const builds = model.builds.filter(build => build.repository === repository)
      try {
        const found = isReached ? await withRetries(read, { retryRules, signal }) : await first(read)
        isReached = true
        yield compare(model, repository, builds, found)
      } catch (thrown) {
        signal.throwIfAborted()
        if (!(thrown instanceof Failure && /^model_not_(found|allowed)$/.test(thrown.code))) throw thrown
        isReached = true
        yield { model: model.name, repository, result: 'missing', notes: [thrown.message] }
      }
    }
}

interface Found {
  license: string | null
  gated: boolean
  files: HubFile[]
}

async function readRepository(repository: string, endpoint: string, ask: HubFetch): Promise<Found> {
  const url = `${endpoint}/api/models/${repository}/revision/main`
  const { response, done } = await ask(url)
  let card: { gated?: unknown; cardData?: { license?: unknown } }
  try {
    card = (await response.json()) as typeof card
  } catch (thrown) {
    throw thrown instanceof SyntaxError
      ? invalidValue(`${endpoint} does not answer like a hub. Check HF_ENDPOINT.`)
      : hubUnreachable(new URL(url), thrown)
  } finally {
    done()
  }
  const { files } = await listRepository({ repository, revision: 'main', file: null }, endpoint, ask)
  const license = card.cardData?.license
  return {
    license: typeof license === 'string' ? license : null,
    gated: card.gated !== undefined && card.gated !== false,
    files,
  }
}

function compare(
  { name, license }: CatalogModel,
  repository: string,
  builds: readonly CatalogBuild[],
  found: Found,
): RepositoryCheck {
  const changed: string[] = []
  const missing: string[] = []
  const added: string[] = []
  const expected = hubLicenses[license] ?? license.toLowerCase()
  // Repositories with converted files often state no license, or `other`.
  if (found.license !== null && found.license !== 'other' && found.license !== expected)
    changed.push(`license is ${found.license}, not ${expected}`)
  for (const { gated, engine, file, quantization, bytes, sha256, projector } of builds) {
    if (gated !== null && gated !== found.gated) changed.push(found.gated ? 'is gated now' : 'is not gated any more')
    else if (gated === null && found.gated) added.push('is gated')
    if (projector && !found.files.some(({ path }) => path === projector.file)) missing.push(`no file ${projector.file}`)
    if (engine === null) continue
    const files = filesFor(
      repository,
      found.files,
      engineFacts(engine).reads === 'repository' ? null : (file ?? quantization),
    )
    if (files === null) {
      missing.push(`no file ${file ?? quantization ?? 'that vLLM loads'}`)
      continue
    }
    const size = files.reduce((sum, one) => sum + one.size, 0)
    const what = file ?? quantization ?? 'all files'
    if (bytes === null) added.push(`${what} has ${size} bytes`)
    else if (bytes !== size) changed.push(`${what} has ${size} bytes, not ${bytes}`)
    const [only, ...more] = files
    if (sha256 !== null && more.length === 0 && only!.hash.kind === 'sha256' && only!.hash.hex !== sha256)
      changed.push(`${what} has the SHA-256 ${only!.hash.hex}, not ${sha256}`)
  }
  return {
    model: name,
    repository,
    result: missing.length > 0 ? 'missing' : changed.length > 0 ? 'changed' : 'confirmed',
    notes: [...missing, ...changed, ...added],
  }
}

/** The files of a build; null where there are none. */
function filesFor(repository: string, files: readonly HubFile[], wanted: string | null): readonly HubFile[] | null {
  try {
    return chooseFiles(repository, files, wanted).files
  } catch {
    return null
  }
}
