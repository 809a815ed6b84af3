import { Failure } from '../../core/failure.ts'

/** Names of the hub in references of Ollama's clients. */
const ofHub = /^(?:hf\.co|huggingface\.co)\/([^/:\s]+\/[^/:\s]+)(?::([^/\s]+))?$/

/**
 * Returns what `infer model add` takes for a name that came over HTTP: a short name of the catalog, or a repository of
 * the hub, also in Ollama's form. Files of this machine and other addresses cannot be named: a token must not make the
 * server read them. Throws Failure `model_not_found`.
 */
export async function addableName(name: string): Promise<string> {
  const [, repository, file] = ofHub.exec(name) ?? []
  if (repository !== undefined) return `hf:${repository}${file === undefined || file === 'latest' ? '' : `:${file}`}`
  if (/^hf:[^/\s]+\/[^/\s]+$/.test(name)) return name
  const { findCatalogModel, nearestCatalogNames } = await import('../../core/models/model-catalog/model-catalog.ts')
  const { didYouMean } = await import('../../core/nearest.ts')
  const model = findCatalogModel(name.replace(/:latest$/, ''))
  if (model) return model.name
  throw new Failure(
    'model_not_found',
    `The catalog has no model '${name.slice(0, 128)}'.${didYouMean(nearestCatalogNames(name))} See the names with: infer model catalog. For a repository of the hub, write hf:owner/name or hf.co/owner/name; add a file with: infer model add <file>.`,
    { param: 'model' },
  )
}
