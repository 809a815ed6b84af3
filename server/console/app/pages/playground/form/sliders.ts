import type { FormField } from './fields.ts'

/** The widest ranges that a slider can set finely enough. */
const widest = { whole: 100, broken: 20 }

/** Whether a slider can set the number: it has both ends, and they are near enough. */
export const isSlider = ({ kind, whole, minimum, maximum }: FormField): boolean =>
  kind === 'number' &&
  minimum !== undefined &&
  maximum !== undefined &&
  maximum > minimum &&
  maximum - minimum <= (whole ? widest.whole : widest.broken)

/** Returns the distance of two values of a slider. */
export const sliderStep = ({ whole, minimum = 0, maximum = 1 }: FormField): number =>
  whole ? 1 : maximum - minimum < 5 ? 0.01 : 0.1
