import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings'
import { withoutLogin } from '../../core/models/hub/settings.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withCommon } from '../terminal/options.ts'
import { releaseName } from './releases/release-kinds.ts'
import { withEvents } from './setup-events.ts'

/** Adds the common options, and the index of the packages. */
export const withIndex = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  withCommon(command).option(
    '--index-url <url>',
    'Python package index; default: that of INFER_PYPI_INDEX, uv and pip, else PyPI',
    readUrl,
  )

/** Adds what happens to the version in use, and which files may name versions. */
export const withVersions = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  withEvents(command)
    .option('--release <version>', 'go back to an installed version, as infer engine list shows it', readVersion)
    .option('--beside', 'keep the current version for models without `engine_version`')
    .option('--config <path>', configOption)

/** The description of the option for the file with the models. */
export const configOption = 'the file whose models may name versions; default: infer.yaml in the data directory'

function readVersion(text: string): string {
  if (releaseName.test(text)) return text
  throw new InvalidArgumentError('Write the name of a version, as infer engine list shows it.')
}

/** Throws usage for a version to go back to together with options for a new one. */
export function requireOneVersion({ release, ...others }: VersionChoice): void {
  const given = Object.entries(others).find(([, value]) => value !== undefined)?.[0]
  if (release === undefined || given === undefined) return
  const option = given.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
  throw usageFailure(`--release takes an installed version as it is, so --${option} has no effect. Leave it out.`)
}

type VersionChoice = Record<string, unknown> & { release?: string | undefined }

/** Adds the choice of a build of PyTorch. */
export const withTorch = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command
    .addOption(
      new Option('--cuda <version>', 'the build of PyTorch for this version of CUDA, such as 12.8')
        .argParser(readCuda)
        .conflicts('cpu'),
    )
    .option('--cpu', 'the build of PyTorch for the processor')
    .option(
      '--torch-index-url <url>',
      'where --cuda and --cpu find PyTorch; default: download.pytorch.org/whl',
      readUrl,
    )

/** Throws usage for an index of PyTorch without a build of it. */
export function requireTorchChoice({ torchIndexUrl, cuda, cpu }: TorchChoice): void {
  if (torchIndexUrl !== undefined && cuda === undefined && !cpu)
    throw usageFailure('--torch-index-url is for --cuda and --cpu. For all packages, use --index-url.')
}

interface TorchChoice {
  torchIndexUrl?: string
  cuda?: string
  cpu?: true
}

function readCuda(text: string): string {
  if (!/^\d{1,2}\.\d$/.test(text)) throw new InvalidArgumentError('Write a version such as 12.8.')
  return text
}

/** Reads the address of a registry or an index. */
export function readUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new InvalidArgumentError(`Write an address such as https://pypi.org/simple, not '${withoutLogin(text)}'.`)
}
