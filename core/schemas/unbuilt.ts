import { z } from 'zod'

/**
 * A member that the API will have and does not have yet. It is refused by name, because a limit that is taken in
 * silence seems to hold.
 */
export const unbuilt = z
  .unknown()
  .refine(value => value == null, { params: { unbuilt: true } })
  .optional()
  .meta({ description: 'Not supported yet: refused unless null.' })
