/** Stands at the end of a text that is still being written. */
export const Caret = () => (
  <span
    aria-hidden
    className="bg-accent animate-caret ml-0.5 inline-block h-[1.1em] w-0.5 rounded-full align-text-bottom"
  />
)
