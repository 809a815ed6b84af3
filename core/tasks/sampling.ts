type Inputs = Readonly<Record<string, unknown>>

/** Whether a request that may sample gives the same result again: it samples nothing, or names its seed and no temperature. */
export const isRepeatableSample = (inputs: Inputs): boolean =>
  !(typeof inputs.temperature === 'number' && inputs.temperature > 0) && isSeeded(inputs)

/** Whether a request names its seed, or samples nothing. */
export const isSeeded = ({ seed, temperature }: Inputs): boolean => typeof seed === 'number' || temperature === 0
