import { hostEnvironment } from '../../core/config.ts'
import { type FailureDetail, invalidValue } from '../../core/failure.ts'
import { placesIn } from '../../core/models/config-fault.ts'
import type { DeviceSetting } from '../../core/models/device-setting.ts'
import type { Model } from '../../core/models/model.ts'
import { discover } from '../../gpu/devices/nvidia-smi.ts'
import { checkSource } from '../../gpu/estimate/source-check.ts'
import { namedCards } from '../../gpu/placement/named-cards.ts'
import { ownCards, unknownCards } from '../../gpu/placement/own-cards.ts'
import { missingSandboxPaths } from '../../gpu/presets/sandbox-requirements.ts'

/**
 * Checks the files of the enabled models of a valid infer.yaml against their engines and settings. Returns warnings, as
 * sentences. Throws Failure `invalid_value` with the place of each model that cannot run as it is configured.
 */
export async function checkModels(
  models: readonly Model[],
  path: string,
  settings: readonly DeviceSetting[] | undefined,
): Promise<string[]> {
  const warnings: string[] = []
  const namesCards = settings !== undefined || models.some(({ devices }) => Array.isArray(devices))
  const environment = hostEnvironment()
  const all = namesCards ? await discover({ environment }) : undefined
  const cards = all && ownCards(all, { environment, devices: settings })
  const hasCards = all !== undefined && all.devices.length > 0
  if (cards && !hasCards)
    warnings.push(`Which GPUs are named cannot be checked: ${cards.reason ?? 'there is none here.'}`)
  if (hasCards) warnings.push(...unknownCards(all.devices, settings))
  const faults: FailureDetail[] = []
  const placeOf = placesIn(path)
  for (const [at, model] of models.entries()) {
    if (!model.enabled) continue
    const name = `Model '${model.id}': `
    const add = (key: string, message: string) =>
      faults.push({ code: 'invalid_value', path: placeOf(['models', at, key]), message: name + message })
    const { fault, mistakes, warnings: doubts } = await checkSource(model)
    if (fault) add('source', fault.text)
    if (hasCards && Array.isArray(model.devices)) {
      const named = namedCards(model.id, model.devices, cards!.devices, cards!.left)
      if ('missing' in named) add('devices', named.missing)
    }
    for (const mistake of mistakes) add('context_length', mistake)
    warnings.push(...doubts.map(doubt => name + doubt), ...(await missingSandboxPaths(model)))
  }
  const [first] = faults
  if (!first) return warnings
  throw invalidValue(`${first.path}: ${first.message}`, {
    details: faults.length > 1 ? faults.map(one => ({ ...one, path: one.path.slice(path.length + 1) })) : undefined,
  })
}
