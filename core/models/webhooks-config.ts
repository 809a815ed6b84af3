import { z } from 'zod'
import { isNetwork } from '../network-address.ts'
import { Duration } from '../quantities.ts'

export const NetworkText = z.string().refine(isNetwork, 'must be an IP address or a network such as 10.1.0.0/16')

const minute = 60_000
const hour = 3_600_000

/** The section `webhooks` of infer.yaml. */
export const WebhooksConfig = z
  .strictObject({
    allowed_hosts: z
      .array(z.string())
      .optional()
      .meta({
        description: 'Hosts to which webhooks are sent, and to no others. `*.` at the start stands for any name below.',
        example: ['hooks.example.com', '*.example.org'],
        absent: 'every public host',
      }),
    allowed_addresses: z
      .array(NetworkText)
      .default([])
      .meta({
        description: 'Private addresses or networks (CIDR) to which webhooks may be sent too, on any port.',
        example: ['10.1.0.0/16', '127.0.0.1'],
      }),
    timeout: Duration.default(15_000).meta({
      description: 'Time in which the URL of a webhook must answer.',
      example: '30s',
    }),
    retry_delays: z
      .array(Duration)
      .max(20)
      .default([5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour])
      .meta({
        description:
          'Pauses between the attempts to deliver a webhook, each drawn within 20 %. After the last one it is dead: it is sent again only on request.',
        unit: 'milliseconds',
        example: ['5s', '1m', '10m'],
      }),
    parallel: z.number().int().min(1).max(1_000).default(64).meta({
      description: 'Maximum number of webhooks that are sent at a time.',
      unit: 'requests',
      example: 16,
    }),
    parallel_per_endpoint: z.number().int().min(1).max(100).default(8).meta({
      description: 'Maximum number of webhooks that are sent at a time to one endpoint or host.',
      unit: 'requests',
      example: 2,
    }),
    retention: Duration.default(7 * 24 * hour).meta({
      description: 'Time that a delivery is kept after its end, to be read or sent again.',
      example: '30d',
    }),
  })
  .prefault({})
  .meta({
    description: 'Where webhooks may be sent, and when they are sent again.',
    example: { allowed_addresses: ['10.1.0.0/16'] },
    absent: 'the defaults of its keys',
  })
