import { z } from 'zod'

/**
 * A member that the API will have and does not have yet. It is refused by name, because a limit that is taken in
 * silence seems to hold.
 */
export const notImplemented = z
  .unknown()
  .refine(value => value == null, { params: { notImplemented: true } })
  .optional()
  .meta({ description: 'Not supported yet. Any value but null is refused.' })
