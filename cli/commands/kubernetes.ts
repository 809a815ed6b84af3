import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer kubernetes manifest`: what a cluster needs for engines, and for a server of its own. */
export function define(command: Command, terminal: Terminal): void {
  const manifest = command
    .command('manifest')
    .summary('print what kubectl applies to a cluster')
    .description(
      'Prints objects for kubectl: a service account with a role of exactly the rights that infer uses, and a server with a volume, a configuration and a service. With --engines-only the service account and its role alone, for a server outside of the cluster. The namespace must exist.',
    )
    .option('--namespace <name>', 'namespace of the server and its engines', checkedNamespace, 'inference')
    .option('--image <image>', 'image of infer, as bin/Containerfile makes it')
    .option('--storage <size>', 'size of the volume of the data directory', checkedSize, '50Gi')
    .option('--engines-only', 'only what a server elsewhere needs')
    .action(async ({ namespace, image, storage, enginesOnly = false }) => {
      if (enginesOnly && image !== undefined) throw usageFailure('--engines-only needs no --image.')
      if (!enginesOnly && image === undefined)
        throw usageFailure('Give the image of infer with --image, or use --engines-only. See: infer help on-kubernetes')
      const { manifestText } = await import('../kubernetes/server-manifest.ts')
      terminal.stdout.write(manifestText({ namespace, image, storage }))
    })
  withExamples(manifest, [
    ['infer kubernetes manifest --image registry/infer | kubectl apply --filename -', 'a server in the cluster'],
    ['infer kubernetes manifest --engines-only', 'service account and role'],
  ])
  withExamples(command, [['infer kubernetes manifest --engines-only', 'what a server outside of the cluster needs']])
}

function checkedNamespace(text: string): string {
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text)) return text
  throw new InvalidArgumentError('It must be the name of a namespace, such as inference.')
}

function checkedSize(text: string): string {
  if (/^[1-9]\d*(Mi|Gi|Ti)$/.test(text)) return text
  throw new InvalidArgumentError('Write a size as 50Gi.')
}
