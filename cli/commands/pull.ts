import type { Command } from '@commander-js/extra-typings'
import { nearestCatalogNames } from '../../core/models/model-catalog/model-catalog.ts'
import { didYouMean } from '../../core/nearest.ts'
import type { Task } from '../../core/schemas/task.ts'
import { addAnywhere } from '../models/add.ts'
import { withTokenFile } from '../models/pull.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer pull <reference>`: downloads a model from a hub and offers it. Asks only if its engine is not installed. */
export function define(command: Command, terminal: Terminal): void {
  withTokenFile(withCommon(command))
    .description(
      'Downloads a model from Hugging Face and adds it to infer.yaml, so that it can be used at once. Refuses a model that does not fit this machine, unless --force is given. With INFER_URL that server downloads it. infer model pull only downloads; infer model add has every setting.',
    )
    .argument(
      '<reference>',
      'a short name of the catalog, owner/name or owner/name:Q8_0, also with hf: before it, or the URL of its page',
    )
    .option('--id <id>', 'the id under which it is offered')
    .option('-y, --yes', 'do not ask, also if its engine is not installed yet')
    .option('--force', 'offer it although it does not fit this machine')
    .action((reference, options) => {
      return interruptible(terminal, async signal => {
        const { findCatalogModel } = await import('../../core/models/model-catalog/model-catalog.ts')
        const what = findCatalogModel(reference) ? reference : hubReference(reference)
        const offerEngine = async (of: { engine: string; tasks: readonly Task[]; dataDir: string }) => {
          const offer = await import('../engines/offer-engine.ts')
          await offer.offerEngine(of, terminal, signal)
        }
        await addAnywhere(what, { ...options, withoutQuestion: true }, terminal, signal, { offerEngine })
      })
    })
  withExamples(command, [
    ['infer pull qwen3-8b', 'from the catalog (infer model catalog)'],
    ['infer pull Qwen/Qwen3-8B-GGUF', 'Q4_K_M, or the file closest to it'],
    ['infer pull hf.co/Qwen/Qwen3-8B-GGUF:Q8_0', 'another quantization'],
    ['infer pull hf:Qwen/Qwen3-8B-GGUF --id qwen3', 'with an id of your choice'],
  ])
}

/** Returns a reference in the form that `infer model add` takes. Throws usage for text that names no repository. */
function hubReference(text: string): string {
  if (/^(hf:|https?:\/\/)/i.test(text)) return text
  const bare = text.replace(/^(www\.)?(hf\.co|huggingface\.co)\//i, '')
  if (/^[\w.-]*\w[\w.-]*\/[\w.-]+(@[^:]+)?(:.+)?$/.test(bare) && !bare.startsWith('.')) return `hf:${bare}`
  if (/[/\\]|\.gguf$/.test(text))
    throw usageFailure(`'${text}' is a file on this machine. Add it with: infer model add ${text}`)
  throw usageFailure(
    `'${text}' names no repository and no model of the catalog.${didYouMean(nearestCatalogNames(text))} See infer model catalog, or name a repository: infer pull hf:owner/name, such as hf:Qwen/Qwen3-8B-GGUF.`,
  )
}
