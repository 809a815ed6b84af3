import { selfFiles } from '../../core/assets.ts'
import type { Model } from '../../core/models/model.ts'
import type { SandboxRequirements } from '../sandbox/level.ts'
import { modelPaths } from '../sandbox/model-paths.ts'
import type { LaunchFacts, Preset } from './preset.ts'

/** The sandbox level of the model's configuration, else that of its preset. */
export const wantedLevel = (
  { sandbox }: Pick<Model, 'sandbox'>,
  preset: Pick<Preset, 'sandbox'>,
): Pick<SandboxRequirements, 'level' | 'required'> => ({
  level: sandbox ?? preset.sandbox?.level ?? 'none',
  required: sandbox !== undefined,
})

/** The sandbox requirements of a model's engine. */
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
