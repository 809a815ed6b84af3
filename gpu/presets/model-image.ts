import type { Model } from '../../core/models/model.ts'
import type { KubernetesPool, PoolUse } from '../../core/models/pools.ts'
import { presetOf } from './presets.ts'

/**
 * The image of the engine of a model in a pool, and its program there: that of the model there, of the pool, or of its preset.
 * Undefined if none is known. Pure.
 */
export function imageOf(
  model: Model,
  use: PoolUse | undefined,
  { images }: KubernetesPool,
): { name: string; program: string | undefined } | undefined {
  const known = presetOf(model).image?.(model)
  const name = use?.image ?? images[model.engine] ?? known?.name
  return name === undefined ? undefined : { name, program: known?.program }
}
