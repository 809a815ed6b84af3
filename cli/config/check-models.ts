import { type FailureDetail, invalidValue } from '../../core/failure.ts'
import { placesIn } from '../../core/models/config-fault.ts'
import type { Model } from '../../core/models/model.ts'
import { checkSource } from '../../gpu/estimate/source-check.ts'
import { missingSandboxPaths } from '../../gpu/presets/sandbox-requirements.ts'

/**
 * Checks the files of the enabled models of a valid infer.yaml against their engines and settings. Returns warnings, as
 * sentences. Throws Failure `invalid_value` with the place of each model that cannot run as it is configured.
 */
export async function checkModels(models: readonly Model[], path: string): Promise<string[]> {
  const warnings: string[] = []
  const faults: FailureDetail[] = []
  const placeOf = placesIn(path)
  for (const [at, model] of models.entries()) {
    if (!model.enabled) continue
    const name = `Model '${model.id}': `
    const add = (key: string, message: string) =>
      faults.push({ code: 'invalid_value', path: placeOf(['models', at, key]), message: name + message })
    const { fault, mistakes, warnings: doubts } = await checkSource(model)
    if (fault) add('source', fault.text)
    for (const mistake of mistakes) add('context_length', mistake)
    warnings.push(...doubts.map(doubt => name + doubt), ...missingSandboxPaths(model))
  }
  const [first] = faults
  if (!first) return warnings
  throw invalidValue(`${first.path}: ${first.message}`, {
    details: faults.length > 1 ? faults.map(one => ({ ...one, path: one.path.slice(path.length + 1) })) : undefined,
  })
}
