import { Model } from '../../core/models/model.ts'
import type { PlacementRequest } from '../../gpu/residency/place.ts'

export const GiB = 2 ** 30

/** A model as in infer.yaml, without a file. */
export const modelOf = (id: string, of: object = {}): Model =>
  Model.parse({ id, engine: 'custom', command: ['{port}'], idle_ttl: 60_000, ...of })

export const wantedOf = (
  id: string,
  gigabytes: number,
  of: Partial<PlacementRequest> = {},
): Omit<PlacementRequest, 'mayEvict'> => ({
  modelId: id,
  bytes: gigabytes * GiB,
  devices: 1,
  kind: 'gpu',
  ...of,
})

/** The same with a layout of twice the context, which takes so many gigabytes, a half of them on each of two cards. */
export const longerOf = (
  id: string,
  gigabytes: number,
  longerGigabytes: number,
): Omit<PlacementRequest, 'mayEvict'> => {
  const layers = Array.from({ length: 32 }, () => ((longerGigabytes - 2) * GiB) / 32)
  const layout = {
    bytes: longerGigabytes * GiB,
    devices: 2,
    split: { each: GiB, layers, by: 'booked' as const },
    plan: { layout: { context: 32_768 } as never },
  }
  const longer = { layout, slots: 1, tokens: 32_768, fewerTokens: 16_384 }
  return wantedOf(id, gigabytes, { mostDevices: 2, split: layout.split, longer })
}
