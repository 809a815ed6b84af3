/** The mark of infer: the sign for "therefore", which leads from two to one. The icon in index.html is the same. */
export const Mark = ({ className = 'size-6' }: { className?: string }) => (
  <svg aria-hidden viewBox="0 0 24 24" className={className}>
    <rect width="24" height="24" rx="6" className="fill-accent" />
    <g className="fill-accent-text">
      <circle cx="12" cy="7.5" r="3.5" />
      <circle cx="6.5" cy="16.5" r="2.5" />
      <circle cx="17.5" cy="16.5" r="2.5" />
    </g>
  </svg>
)
