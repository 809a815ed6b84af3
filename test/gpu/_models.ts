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
  kind: 'nvidia',
  ...of,
})
