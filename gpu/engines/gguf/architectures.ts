import names from './architectures.json' with { type: 'json' }

/**
 * The architectures of models that the llama.cpp of the built-in engine loads, as `general.architecture` of a GGUF file
 * names them. A test asks the library for each.
 */
export const architectures: ReadonlySet<string> = new Set(names)
