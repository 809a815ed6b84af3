import { z } from 'zod'
import { HttpUrl } from '../http-url.ts'

/** First parts of model names and of paths below /slug that cannot be names of peers. */
const reserved = ['infer', 'requests', 'queue']

const PeerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be a name such as box2')
  .refine(name => !reserved.includes(name), 'is reserved: give the peer another name')

/** The other keys of the file in each example. */
const peer = { peers: { team: { url: 'http://other-box:8787' } } }

export const PeerSettings = z
  .strictObject({
    url: HttpUrl.refine(
      url => !URL.canParse(url) || (new URL(url).pathname === '/' && new URL(url).search === ''),
      'must be an address without a path: http://other-box:8787',
    ).meta({
      description: 'Address of the other infer, without a path.',
      example: 'http://other-box:8787',
      with: peer,
    }),
    api_key_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
      .optional()
      .meta({
        description:
          'Environment variable of the server with the token that the other infer has made for this one. It limits which of its models are offered here.',
        example: 'OTHER_BOX_TOKEN',
        with: peer,
        absent: 'none: the other infer refuses requests without a token',
      }),
  })
  .meta({ id: 'Peer' })
export type PeerSettings = z.output<typeof PeerSettings>

/** The key `peers` of infer.yaml. */
export const Peers = z
  .record(PeerName, PeerSettings)
  .nullish()
  .transform(peers => peers ?? {})
  .meta({
    description:
      'Other infers, by name, all of whose models are offered here: as `<peer>/<name>`, and under their own name where no model here has it. They appear, change and go with those of the other infer.',
    example: { box2: { url: 'http://other-box:8787', api_key_env: 'BOX2_TOKEN' } },
    absent: 'none',
  })
export type Peers = z.output<typeof Peers>

/** The peer whose models have names that begin like this one; undefined if there is none. */
export function peerOfName(name: string, peers: Readonly<Record<string, unknown>>): string | undefined {
  const [first, ...rest] = name.split('/')
  return rest.length > 0 && Object.hasOwn(peers, first!) ? first : undefined
}
