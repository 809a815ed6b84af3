/** Where an engine runs, and why not on the GPUs of the machine. */
export interface EnginePlacement {
  /** `split`: some layers on GPUs, the others on the processor. `elsewhere`: on a server that infer does not start. */
  on: 'gpu' | 'split' | 'processor' | 'elsewhere'
  /** Layers on GPUs, and all, the output counted as one; null for engines whose layers infer does not choose. */
  layers: { gpu: number; total: number } | null
  /** All of it as a part of a sentence: `on GPU 0, 37 of 37 layers`. Names the reason and the advice. */
  detail: string
  /** The command that would bring it to GPUs that nobody has told it to leave; null if there is none. */
  advice: string | null
  /** What would make its context longer, as sentences, where the memory has made it short. */
  longerContext: readonly string[]
}
