import { oneLine, withoutLocations } from '../../core/tasks/protocols/engine-text.ts'

/** What an engine says of files that it can never load, because it does not know such a model. */
const unknownModel = [
  // llama.cpp and what is built on it.
  /unknown (model )?architecture/i,
  /unknown pre-tokenizer type/i,
  /missing tensor|tensor '[^']*' (not found|has wrong shape)|wrong number of tensors/i,
  // Transformers, vLLM, SGLang.
  /Transformers does not recognize this architecture/i,
  /model architectures? .* (is|are) not supported/i,
]
/** What it says of damaged files, which may be replaced. */
const damagedFiles = [
  /(invalid|bad|wrong) magic/i,
  /data is not within the file bounds|file is (corrupted|truncated)|corrupted or incomplete/i,
  // Safetensors.
  /Error while deserializing header|(Header|Metadata)(TooLarge|TooSmall|Incomplete\w*)/,
]

/** How lines of logs begin: times, levels, and the function or class that prints them. */
const logPrefix = /^(\S*:\s+|\[[^\]]*\]\s*|\d[\d:.,/T-]*\s+|(E|ERROR|WARNING)\s+)+/

/** Why an engine refuses the files of a model for good, in its own words, without locations. */
export interface LoadRefusal {
  said: string
  /** As in `SourceFault`. */
  lies: 'files' | 'model'
}

/**
 * Returns why an engine that ended while it was loading can never load its files, by the end of its output; undefined if
 * another start may succeed, as without free memory. Pure.
 */
export function loadRefusal(output: readonly string[]): LoadRefusal | undefined {
  for (const line of output.slice(-100)) {
    const lies = unknownModel.some(one => one.test(line))
      ? 'model'
      : damagedFiles.some(one => one.test(line))
        ? 'files'
        : undefined
    if (lies) return { said: oneLine(withoutLocations(line.replace(logPrefix, '')), 300).replace(/\.$/, ''), lies }
  }
  return undefined
}
