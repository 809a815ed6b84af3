import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { slugOf } from '../../core/models/propose.ts'
import { installAdvice, isInstalled } from './engine-programs.ts'
import type { Located } from './locate.ts'
import type { GivenSettings } from './proposal.ts'

const isProjector = (name: string): boolean => /(^|[-_./])mmproj([-_.]|$)/i.test(name) && /\.gguf$/i.test(name)

/** Formats of image encoders, the most exact that are common first. */
const formats = ['f16', 'bf16', 'q8_0', 'f32']

/** Returns the image encoder among the files of a model; undefined if there is none. */
export function chooseProjector(names: readonly string[]): string | undefined {
  const rank = (name: string) => {
    const at = formats.findIndex(format => new RegExp(`(^|[-_.])${format}([-_.]|$)`, 'i').test(basename(name)))
    return at < 0 ? formats.length : at
  }
  return names.filter(isProjector).toSorted((a, b) => rank(a) - rank(b))[0]
}

/** Whether llama-server will run a GGUF model with an image encoder, because it is chosen or installed. */
export const usesLlamaServer = ({ engine }: GivenSettings, dataDir: string): boolean =>
  engineFacts(engine).takesProjector === true ||
  (engine === undefined && isInstalled('llama-server', { dataDir, path: hostEnvironment().PATH ?? '', tasks: [] }))

/**
 * Returns the engine of a GGUF model and its arguments: llama-server with the image encoder that was downloaded with the
 * model or lies beside it, if llama-server is there. The built-in engine, for which `engine` is absent, reads no images.
 */
export function withProjector(
  { path, args }: Located,
  given: GivenSettings,
  dataDir: string,
): { engine?: string; args?: readonly string[]; advice: string[] } {
  const engine = given.engine === undefined ? {} : { engine: given.engine }
  const projector = args?.includes('--mmproj') ? undefined : besideOf(path)
  if (projector === undefined) {
    const needed = args?.includes('--mmproj') && given.engine === undefined ? { engine: 'llama-server' } : engine
    return { ...needed, ...(args === undefined ? {} : { args }), advice: [] }
  }
  if (usesLlamaServer(given, dataDir))
    return { engine: 'llama-server', args: [...(args ?? []), '--mmproj', projector], advice: [] }
  return {
    ...engine,
    ...(args === undefined ? {} : { args }),
    advice:
      given.engine === undefined
        ? [
            `'${projector}' lets this model read images, with the engine llama-server only. ${installAdvice('llama-server', [])}`,
          ]
        : [],
  }
}

/** Returns the image encoder beside a local model, if the folder has files of this model only. */
function besideOf(path: string): string | undefined {
  let names: string[]
  try {
    names = readdirSync(dirname(path)).filter(name => /\.gguf$/i.test(name))
  } catch {
    return undefined
  }
  const models = new Set(names.filter(name => !isProjector(name)).map(name => slugOf(name) ?? name))
  const projector = models.size === 1 ? chooseProjector(names) : undefined
  return projector === undefined ? undefined : join(dirname(path), projector)
}
