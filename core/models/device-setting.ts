import { z } from 'zod'
import { Bytes } from '../quantities.ts'

const Named = z.union([z.int().min(0), z.string().min(1)])

/** A GPU of this machine by number, id, UUID or name, and the memory that infer may use of it. */
export const DeviceSetting = z.union([
  Named,
  z.strictObject({
    device: Named.meta({ description: 'The GPU, by number, id, UUID or name.', example: 1 }),
    memory: z
      .union([
        z.string().regex(/^(100|[1-9]?\d)(\.\d+)?%$/, 'must be an amount such as 12GB, or a part such as 50%'),
        Bytes,
      ])
      .meta({
        description: 'Memory that all engines together may use of it: an amount, or a part of it.',
        example: '12GB',
      }),
  }),
])
export type DeviceSetting = z.output<typeof DeviceSetting>
