import { isAbsolute } from 'node:path'
import { selfFiles } from '../../core/assets.ts'
import { enabledAdapters } from '../../core/models/adapter.ts'
import { partsOf } from '../../core/models/gguf-parts.ts'
import type { Model } from '../../core/models/model.ts'
import { absent } from '../../core/models/source-files.ts'
import type { SandboxRequirements } from '../sandbox/level.ts'
import type { LaunchFacts, Preset } from './preset.ts'

/** The sandbox level of the model's configuration, else that of its preset. */
export const wantedLevel = (
  { sandbox }: Pick<Model, 'sandbox'>,
  preset: Pick<Preset, 'sandbox'>,
): Pick<SandboxRequirements, 'level' | 'required'> => ({
  level: sandbox ?? preset.sandbox?.level ?? 'none',
  required: sandbox !== undefined,
})

export function sandboxRequirementsOf(model: Model, preset: Preset, facts: LaunchFacts): SandboxRequirements {
  const needs = preset.sandbox
  return {
    ...wantedLevel(model, preset),
    read: [
      ...[model.source, model.speculative?.draft_model].flatMap(path => (path === undefined ? [] : modelPaths(path))),
      ...enabledAdapters(model).flatMap(({ source }) => (isAbsolute(source) ? modelPaths(source) : [])),
      ...(needs?.isOwn ? selfFiles() : []),
      ...(needs?.reads?.(model, facts) ?? []),
      ...model.sandbox_read,
    ],
    write: [...model.sandbox_write, ...(facts.conversations === undefined ? [] : [facts.conversations])],
    programs: needs?.programs ?? [],
  }
}

/** In a hub's cache, `snapshots` contains links to files in the same model folder. */
const hubFolder = /^(\/.*?\/models--[^/]+)\/snapshots\//

/** Returns the paths of all files of a model, given the path in its configuration. Pure. */
export function modelPaths(source: string): string[] {
  const [, hub] = hubFolder.exec(source) ?? []
  return hub === undefined ? partsOf(source) : [hub]
}

type Named = Pick<Model, 'id' | 'sandbox' | 'sandbox_read' | 'sandbox_write'>

/**
 * Returns a sentence for each path of `sandbox_read` and `sandbox_write` that does not exist on this machine. Engines
 * start without such a path, because it may belong to an optional device. Empty for a model without a sandbox.
 */
export async function missingSandboxPaths(model: Named): Promise<string[]> {
  if (model.sandbox === 'none') return []
  const found = await Array.fromAsync(['sandbox_read', 'sandbox_write'] as const, async field =>
    (await absent(model[field])).map(
      path =>
        `'${field}' of '${model.id}' names ${path}, which does not exist here, so its engine does not see it. Create it before the engine starts, or correct infer.yaml.`,
    ),
  )
  return found.flat()
}
