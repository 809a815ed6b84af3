/** Texts of tags and of the filter by a tag. */
export const tagsText = {
  filter: 'Tag',
  only: (tag: string) => `Only with the tag ${tag}`,
} as const
