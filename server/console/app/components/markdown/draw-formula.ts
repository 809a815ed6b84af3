import temml from 'temml'

/** Macros in a formula that may be expanded; more would be a loop. Far fewer of its own, whose length the library does not limit. */
const maxExpand = 1_000
const maxOwnExpand = 20
const defines = /\\(?:[gex]?def|let|(?:re)?newcommand|providecommand)/
/** The largest size that a formula may ask for: ems, and pixels of lengths in other units. */
const maxSize: [number, number] = [20, 400]

/**
 * Draws a formula as MathML into an element that has no other content. Returns false, and leaves the element empty, if it is no
 * TeX. Links, images and names that the TeX asks for are left out.
 */
export function drawFormula(tex: string, isDisplay: boolean, place: HTMLElement): boolean {
  try {
    temml.render(tex, place, {
      displayMode: isDisplay,
      throwOnError: true,
      trust: false,
      maxExpand: defines.test(tex) ? maxOwnExpand : maxExpand,
      maxSize,
    })
  } catch {
    place.replaceChildren()
    return false
  }
  for (const named of place.querySelectorAll('[id], [href]')) {
    named.removeAttribute('id')
    named.removeAttribute('href')
  }
  return true
}
export type DrawFormula = typeof drawFormula
