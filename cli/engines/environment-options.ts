import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withCommon } from '../terminal/options.ts'
import { readUrl } from './setup-gpu.ts'

/** Adds the common options, and the index of the packages. */
export const withIndex = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  withCommon(command).option(
    '--index-url <url>',
    'Python package index; default: that of INFER_PYPI_INDEX, uv and pip, else PyPI',
    readUrl,
  )

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
