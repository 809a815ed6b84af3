import type { SubmitterOwners } from '../../work/submitters.ts'
import { replicateFileRoutes } from './files.ts'
import { replicateModelRoutes } from './models.ts'
import { predictionRoutes } from './predictions.ts'
/** The routes of the Replicate-compatible API. */
export const replicateRoutes = (owners: SubmitterOwners) => [
  ...predictionRoutes(owners),
  ...replicateModelRoutes(owners),
  ...replicateFileRoutes(owners),
]
