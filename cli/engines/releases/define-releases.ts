import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings'
import { localDirectory } from '../../client/find-server.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { withEvents } from '../setup-events.ts'
import { releaseBackends, releaseKinds, releaseName } from './release-kinds.ts'

const withOrigin = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  withEvents(withCommon(command))
    .option('--from <where>', 'a folder of --download-only, or a mirror with the paths of GitHub; default: GitHub')
    .option('--config <path>', 'the file whose models may name versions; default: infer.yaml in the data directory')
    .option('-y, --yes', 'do not ask')

/** `infer engine setup llama-server` and `sd-server`: installs the program that its maker publishes. */
export function defineSetupReleases(setup: Command, terminal: Terminal): void {
  for (const kind of Object.values(releaseKinds)) {
    const command = withOrigin(setup.command(kind.name))
      .summary(`install the server of ${kind.title}, as its maker publishes it`)
      .description(
        `Downloads a program from the releases of ${kind.repository} that suits the GPUs and the processor, verifies it by the SHA-256 that the release publishes, and tries it before it replaces an installed version. Shows size, license and source first. Models with \`engine: ${kind.name}\` use it before one that is on the PATH; running engines keep their version. An interrupted download is continued by the same command.`,
      )
      .option('--release <name>', 'another release than the latest', readReleaseName)
      .addOption(
        new Option('--backend <name>', 'what it computes on; default: by the GPUs of this machine')
          .choices(['auto', ...releaseBackends])
          .default('auto' as const),
      )
      .option('--beside', 'keep the current version for models without `engine_version`')
      .option('--download-only <folder>', 'only download to this folder, for a machine without a network')
      .action(async options => {
        const dataDir = localDirectory(command, options.dataDir)
        const { setUpRelease } = await import('./set-up-release.ts')
        await interruptible(terminal, signal => setUpRelease(kind, { ...options, dataDir }, terminal, signal))
      })
    withExamples(command, [
      [`infer engine setup ${kind.name}`, 'the latest release, chosen for this machine'],
      [`infer engine setup ${kind.name} --backend vulkan`, 'the build for Vulkan'],
      [`infer engine setup ${kind.name} --from https://mirror.example.com`, 'from a mirror'],
      [`infer engine setup ${kind.name} --download-only usb`, 'on a machine with a network'],
    ])
  }
}

/** `infer engine update llama-server` and `sd-server`: replaces the current version while engines serve. */
export function defineUpdateReleases(update: Command, terminal: Terminal): void {
  for (const kind of Object.values(releaseKinds)) {
    const command = withOrigin(update.command(kind.name))
      .summary(`the server of ${kind.title}`)
      .description(
        `Replaces the current version of ${kind.name} by the latest release, after a trial. Running engines keep theirs until their next load, and so do models with \`engine_version\`. The version before stays; older ones that nothing uses are deleted.`,
      )
      .option('--check', 'only ask whether a newer release exists')
      .action(async options => {
        const dataDir = localDirectory(command, options.dataDir)
        const { updateRelease } = await import('./set-up-release.ts')
        await interruptible(terminal, signal => updateRelease(kind, { ...options, dataDir }, terminal, signal))
      })
    withExamples(command, [
      [`infer engine update ${kind.name} --check`, 'ask, and change nothing'],
      [`infer engine update ${kind.name}`, 'show what is downloaded, ask, try it and replace'],
    ])
  }
}

function readReleaseName(text: string): string {
  if (releaseName.test(text)) return text
  throw new InvalidArgumentError('Write the name of a release, such as b11101.')
}
