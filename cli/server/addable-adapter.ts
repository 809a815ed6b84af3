import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, normalize } from 'node:path'
import { invalid } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'

/** Folders that a refusal lists. */
const maxListed = 5

/**
 * Returns what `infer model add --adapter-of` takes for a LoRA that was named over HTTP: a name on the hub, or the absolute path
 * of a file or folder on this machine. Only folders in which models are, and what the base may read, are looked at: a token must
 * not find out which other files there are. Throws Failure `invalid_value`.
 */
export async function addableAdapter(
  name: string,
  adapterOf: string,
  { models, dataDir }: { models: readonly Model[]; dataDir: string },
): Promise<string> {
  const [, repository] = /^(?:hf:)?(\w[\w.-]*\/\w[\w.-]*)$/.exec(name) ?? []
  if (repository !== undefined) return `hf:${repository}`
  if (!isAbsolute(name))
    throw invalid(
      'model',
      `'${name}' is no LoRA that the server can add. Give its absolute path on the machine of the server, or hf:owner/name.`,
    )
  const folders = [
    join(dataDir, 'models'),
    ...models.flatMap(({ id, source, adapters = [], sandbox_read }) => [
      ...[source, ...adapters.map(one => one.source)].flatMap(path =>
        path && isAbsolute(path) ? [dirname(path)] : [],
      ),
      ...(id === adapterOf ? sandbox_read : []),
    ]),
  ].filter(folder => folder !== '/')
  const path = normalize(name)
  const real = await realpath(path).catch(() => path)
  const allowed = new Set([
    ...folders,
    ...(await Promise.all(folders.map(folder => realpath(folder).catch(() => folder)))),
  ])
  const isInside = (one: string) => [...allowed].some(folder => one === folder || one.startsWith(join(folder, '/')))
  if (isInside(path) && isInside(real)) return path
  const listed = [...new Set(folders)].slice(0, maxListed).join(', ')
  throw invalid(
    'model',
    `'${name}' is in no folder from which adapters are added over the API. Put it into one of these: ${listed}. Or name its folder in 'sandbox_read' of '${adapterOf}'.`,
  )
}
