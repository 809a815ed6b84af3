import { existsSync } from 'node:fs'
import { selfFiles } from '../../core/assets.ts'
import type { Model } from '../../core/models/model.ts'
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
      ...(model.source === undefined ? [] : modelPaths(model.source)),
      ...(needs?.isOwn ? selfFiles() : []),
      ...(needs?.reads?.(model, facts) ?? []),
      ...model.sandbox_read,
    ],
    write: model.sandbox_write,
    programs: needs?.programs ?? [],
  }
}

const partName = /-(\d{5})-of-(\d{5})\.gguf$/i

/** In a hub's cache, `snapshots` contains links to files in the same model folder. */
const hubFolder = /^(\/.*?\/models--[^/]+)\/snapshots\//

/** Returns the paths of all files of a model, given the path in its configuration. Pure. */
export function modelPaths(source: string): string[] {
  const [, hub] = hubFolder.exec(source) ?? []
  if (hub !== undefined) return [hub]
  const [, , count] = partName.exec(source) ?? []
  if (count === undefined) return [source]
  // No real model has more than 1000 parts.
  return Array.from({ length: Math.min(Number(count), 1000) }, (_, at) =>
    source.replace(partName, `-${String(at + 1).padStart(5, '0')}-of-${count}.gguf`),
  )
}

type Named = Pick<Model, 'id' | 'sandbox' | 'sandbox_read' | 'sandbox_write'>

/**
 * Returns a sentence for each path of `sandbox_read` and `sandbox_write` that does not exist on this machine. Engines
 * start without such a path, because it may belong to an optional device. Empty for a model without a sandbox.
 */
export const missingSandboxPaths = (model: Named): string[] =>
  (['sandbox_read', 'sandbox_write'] as const).flatMap(field =>
    (model.sandbox === 'none' ? [] : model[field])
      .filter(path => !existsSync(path))
      .map(
        path =>
          `'${field}' of '${model.id}' names ${path}, which does not exist here, so its engine does not see it. Create it before the engine starts, or correct infer.yaml.`,
      ),
  )
