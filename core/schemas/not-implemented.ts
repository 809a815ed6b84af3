import { z } from 'zod'

/**
 * A member that the API does not support yet. It is refused by name: if it were ignored, callers would believe that it
 * works.
 */
export const notImplemented = z
  .unknown()
  .refine(value => value == null, { params: { notImplemented: true } })
  .optional()
  .meta({ description: 'Not supported yet. Any value but null is refused.' })
