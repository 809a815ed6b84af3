import { isAbsolute } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { type GgufHeader, readGgufHeader } from '../../core/models/gguf-header.ts'
import type { Model } from '../../core/models/model.ts'
import { missingFiles, strayFolders } from '../../core/models/source-files.ts'

/** Why an engine can never load the files of a model. */
export interface SourceFault {
  /** A sentence, which may name the files. */
  text: string
  /** `files`: they are missing or damaged, and may be replaced. `model`: the engine cannot run this model. */
  lies: 'files' | 'model'
}

export interface SourceCheck {
  fault: SourceFault | undefined
  /** What is wrong with the settings, by these files, although the engine loads them. Sentences. */
  mistakes: string[]
  /** Why the engine may not be able to load them: it may be newer than what infer knows. Sentences. */
  warnings: string[]
}

type Checked = Pick<Model, 'engine' | 'source' | 'tasks' | 'context_length' | 'args' | 'comfyui'>

/**
 * Checks the files of a model on this machine against its engine and its settings, without loading them. Nothing is known
 * about a name on a hub, about what a custom command reads, and about the files of a server elsewhere.
 */
export async function checkSource(model: Checked, readHeader = readGgufHeader): Promise<SourceCheck> {
  const { engine, source } = model
  const none = { fault: undefined, mistakes: [], warnings: [] }
  const { reads, isBuiltIn, isElsewhere, isAny } = engineFacts(engine)
  if (source === undefined || isElsewhere || isAny || (reads !== 'gguf' && !isAbsolute(source))) return none
  const missing = await missingFiles(source)
  if (missing !== undefined) return { ...none, fault: { text: missing, lies: 'files' } }
  if (reads !== 'gguf') return { ...none, warnings: await strayFolders(source) }
  let header: GgufHeader
  try {
    header = await readHeader(source)
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    return isBuiltIn
      ? { ...none, fault: { text: thrown.message, lies: 'files' } }
      : { ...none, warnings: [thrown.message] }
  }
  return checkHeader(header, model)
}

/** Checks a model by the header of its GGUF file, which need not be on this machine, as `checkSource` does. */
export async function checkHeader(header: GgufHeader, model: Checked): Promise<SourceCheck> {
  // Loaded only here, because the parser of templates is large.
  const { loadFault } = await import('../engines/gguf/load-fault.ts')
  const fault = loadFault(header, model.tasks)
  const mistakes = contextMistake(header, model)
  if (engineFacts(model.engine).isBuiltIn)
    return { fault: fault && { text: `${fault.why} ${fault.instead}`, lies: 'model' }, mistakes, warnings: [] }
  const doubts = fault ? [`${fault.why} The engine '${model.engine}' may not load it either.`] : []
  return { fault: undefined, mistakes: [], warnings: [...doubts, ...mistakes] }
}

/** Options of llama-server by which a model reads longer texts than those of its training. */
const stretches = /^--(rope|yarn)/

function contextMistake({ contextLength }: GgufHeader, { context_length: given, args }: Checked): string[] {
  if (contextLength === null || given === undefined || given <= contextLength) return []
  if (args.some(arg => stretches.test(arg))) return []
  return [
    `A context of ${given} tokens is above the ${contextLength} for which the model was trained, and it fails beyond them. Set ${contextLength} or less.`,
  ]
}
