const outOfMemory = 'out of memory'
const gpuError = 'the GPU reported an error'
const tooLarge = 'a tensor is larger than one buffer of the GPU can be'

/**
 * Classes of engine errors that callers may see. The output of engines names files, addresses and other tenants' requests,
 * so callers get only the class of an engine error. Only messages about an invalid request are quoted, without locations.
 */
const classes: readonly [says: RegExp, sentence: string][] = [
  // llama.cpp on Vulkan, mostly of the cache of one layer. It refuses every operation with such a tensor, also none.
  [/pre-allocated tensor .*cannot run the operation \(NONE\)|buffer size exceeds device/i, tooLarge],
  [
    /out ?of ?(\w+ ?)?memory|\boom\b|bad_alloc|(cannot|failed to|unable to) allocate|allocation of size \d+ failed|(not enough|no available) memory/i,
    outOfMemory,
  ],
  // vLLM, of memory on the card, main memory, and the part that is left for its cache.
  [/(free|available) memory\b.*\bis less than (desired|requested)/i, outOfMemory],
  [/address already in use|EADDRINUSE|failed to bind/i, 'its port is in use'],
  [/unrecognized arguments?|unknown (argument|option)|invalid (argument|option)|^usage:/i, 'its arguments are wrong'],
  [
    /(failed to|cannot|could not|error) load(ing)?\b.*model|invalid magic|unknown model architecture/i,
    'the model cannot be loaded',
  ],
  // TEI, and vLLM, which takes a folder that does not exist for a name in the hub.
  [/\b(config|tokenizer)\.json\W* not found|repo id must be in the form/i, 'the model cannot be loaded'],
  [
    /ModuleNotFoundError|cannot open shared object|command not found|\bENOENT\b|no such file/i,
    'a program or file is missing',
  ],
  [/permission denied|\bEACCES\b/i, 'permission denied'],
  [/\bapi key|unauthori[sz]ed/i, 'it refuses the key of this server'],
  [/\bquota|billing/i, 'its quota is used up'],
  [/\b(cuda|cublas|cudnn|nccl|hip|vulkan|driver)\b/i, gpuError],
]

/** Returns the class of an error from the output of an engine, as the end of a sentence; undefined if unknown. */
export const faultClass = (words: string): string | undefined => classes.find(([says]) => says.test(words))?.[1]

/** Whether a line of an engine's output is about memory that it did not get. */
export const isOutOfMemory = (line: string): boolean => faultClass(line) === outOfMemory

/** Whether a reason with such a class says that an engine ran out of memory, or that its GPU reported an error. */
export const saysOutOfMemory = (reason: string): boolean => reason.includes(`: ${outOfMemory}`)
/** Whether it says that a tensor does not fit into one buffer of the GPU, however much is free there. */
export const saysTooLarge = (reason: string): boolean => reason.includes(`: ${tooLarge}`)
export const saysGpuError = (reason: string): boolean => reason.includes(`: ${gpuError}`)

/** Returns a text of an engine on one line, without control characters. */
export const oneLine = (text: string, maxLength = 500): string =>
  text
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, maxLength)

const address = '[address removed]'
const path = '[path removed]'

/** Returns the text without URLs, network and memory addresses, and paths of files. */
export const withoutLocations = (text: string): string =>
  text
    .replaceAll(/\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>]+/gi, address)
    .replaceAll(/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b|\blocalhost:\d{1,5}\b|\[[0-9a-f:]{2,45}\]:\d{1,5}/gi, address)
    .replaceAll(/\b0x[0-9a-f]{4,16}\b/gi, address)
    .replaceAll(/(?<![\w/.\]-])(?:~|\.{1,2})?\/[\w.@+~-]+(?:\/[\w.@+~-]+)*\/?/g, path)
    .replaceAll(/\b[A-Za-z]:\\[^\s"'<>|]+/g, path)
