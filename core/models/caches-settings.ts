import { z } from 'zod'
import { section } from '../config.ts'
import { Bytes, Duration } from '../quantities.ts'

/** The section `caches` of infer.yaml. */
export const CachesSettings = section(
  'How much memory of conversations is kept when their model is unloaded, so that the next request need not compute them again. For models of the built-in engine and of llama-server.',
  { memory: '10%', age: '4h' },
  {
    memory: z
      .union([
        z.string().regex(/^(100|[1-9]?\d)(\.\d+)?%$/, 'must be an amount such as 4GB, or a part such as 5%'),
        Bytes,
      ])
      .default('5%')
      .meta({
        description:
          'Main memory for it: an amount, or a part of the memory of the machine; 0 saves nothing. If it is full, the organization that uses most of it loses its least recently used conversation.',
        unit: 'bytes',
        example: '8GB',
      }),
    age: Duration.default(3_600_000).meta({
      description: 'Time after which a conversation is deleted that was not continued.',
      example: '30m',
    }),
    disk: z.boolean().default(false).meta({
      description:
        'Whether saved conversations are copied into the data directory, encrypted with a key of their organization, so that they outlive a restart of the machine.',
      example: true,
    }),
  },
)
export type CachesSettings = z.output<typeof CachesSettings>
