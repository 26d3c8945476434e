// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause
// Forms that are made from the JSON Schema of documents: what may stand in one is said nowhere else.
"use strict";

/** Make an element: attributes, properties that begin with "on", children. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined && one !== ""));
  return made;
}

/** Words in which `keys` stand as code. */
const coded = (text) => text.split("`").map((one, at) => at % 2 ? make("code", {}, one) : one);

let ids = 0;
const escaped = (key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1");

/** A form of a schema: ``value`` is what it holds, as the document has it. */
class Form {
  constructor(schema, value, name) {
    this.schema = schema;
    this.value = value ?? {};
    this.name = name;
    this.element = make("div", { class: "form" });
    this.draw();
  }

  draw(focus = null) {
    const drawn = this.object(this.schema, this.value, "", "");
    this.element.replaceChildren(...drawn);
    if (focus !== null) (this.at(focus) ?? this.element).querySelector("input, select, textarea, button")?.focus();
  }

  at(path) {
    return [...this.element.querySelectorAll("[data-path]")].find((one) => one.dataset.path === path);
  }

  /** Show an error beside the field of a path, or of the nearest one around it; return whether there is one. */
  say(path, words) {
    this.forget();
    let near = path, found = this.at(near);
    while (!found && near) {
      near = near.slice(0, near.lastIndexOf("/"));
      found = this.at(near);
    }
    const place = found ?? this.element;
    const id = `error-${++ids}`;
    const field = place.matches("input, select") ? place : place.querySelector(":scope > input, :scope > select");
    const said = make("p", { class: "error", id, role: "alert" }, words);
    (place.matches("fieldset") ? place.firstElementChild : place.lastElementChild ?? place).after(said);
    if (!place.children.length) place.append(said);
    field?.setAttribute("aria-invalid", "true");
    field?.setAttribute("aria-describedby", id);
    (field ?? said).scrollIntoView({ block: "center" });
    field?.focus();
    return Boolean(found);
  }

  forget() {
    this.element.querySelectorAll(".error").forEach((one) => one.remove());
    this.element.querySelectorAll("[aria-invalid]").forEach((one) => one.removeAttribute("aria-invalid"));
  }

  resolved(schema) {
    if (!schema.$ref) return schema;
    return { ...this.schema.$defs[schema.$ref.slice("#/$defs/".length)], ...schema, $ref: undefined };
  }

  /** The kinds of values that a schema allows, those of plain text as one. */
  choices(schema) {
    const found = [];
    const walk = (one) => {
      const is = this.resolved(one);
      if (is.anyOf) is.anyOf.forEach(walk);
      else found.push(is);
    };
    walk(schema);
    const parts = found.filter((one) => one.type === "object" || one.type === "array");
    const plain = found.filter((one) => !parts.includes(one));
    if (plain.length > 1) return [{ type: "plain", plain }, ...parts];
    return [...plain, ...parts];
  }

  object(schema, value, path, title) {
    const properties = Object.entries(schema.properties ?? {});
    const needed = schema.required ?? [];
    for (const name of needed) if (!(name in value)) value[name] = this.empty(this.resolved(schema.properties[name]));
    const drawn = properties.filter(([name]) => name in value).map(([name, one]) =>
      this.key(name, one, value, path, needed.includes(name)));
    if (schema.additionalProperties) {
      for (const name of Object.keys(value)) drawn.push(this.key(name, schema.additionalProperties, value, path, false));
      drawn.push(this.adder(`Add a name to ${title}`, null, (name) => this.add(value, name, schema.additionalProperties, path)));
    }
    const left = properties.filter(([name]) => !(name in value));
    if (left.length) {
      drawn.push(this.adder(`Add a key${title ? ` to ${title}` : ` to ${this.name}`}`, left, (name) =>
        this.add(value, name, schema.properties[name], path)));
    }
    return drawn;
  }

  add(value, name, schema, path) {
    if (!name || name in value) return;
    value[name] = this.empty(this.choices(schema)[0]);
    this.draw(`${path}/${escaped(name)}`);
  }

  adder(label, options, act) {
    const field = options
      ? make("select", { "aria-label": label }, make("option", { value: "" }, `${label}…`),
        ...options.map(([name, one]) => make("option", { value: name, title: one.description ?? "" }, name)))
      : make("input", { "aria-label": label, placeholder: "name" });
    if (options) field.addEventListener("change", () => act(field.value));
    return make("p", { class: "buttons" }, field, options ? null : make("button", { type: "button", onclick: () => act(field.value) }, "Add"));
  }

  empty(schema) {
    const is = this.resolved(schema);
    if (is.enum) return is.enum[0];
    if (is.anyOf) return this.empty(this.choices(is)[0]);
    return { object: {}, array: [], boolean: true }[is.type] ?? "";
  }

  key(name, schema, holder, path, needed) {
    const own = `${path}/${escaped(name)}`;
    const remove = needed ? null : make("button", { type: "button", class: "small", "aria-label": `Remove ${name}`, onclick: () => {
      delete holder[name];
      this.draw(path);
    } }, "✕");
    return this.field(name, schema, holder, name, own, remove);
  }

  field(label, schema, holder, at, path, remove) {
    const choices = this.choices(schema), about = schema.description ?? "";
    const value = holder[at];
    const shape = Array.isArray(value) ? "array" : value !== null && typeof value === "object" ? "object" : "plain";
    const chosen = choices.find((one) => (one.type === "object" || one.type === "array" ? one.type : "plain") === shape) ?? choices[0];
    const others = choices.length > 1 ? make("select", { "aria-label": `Kind of ${label}`, onchange: (event) => {
      holder[at] = this.empty(choices[event.target.value]);
      this.draw(path);
    } }, ...choices.map((one, number) => make("option", { value: number, selected: one === chosen },
      { object: one.title ?? "keys", array: "a list" }[one.type] ?? "a value"))) : null;
    if (chosen.type === "object" || chosen.type === "array") {
      const inner = chosen.type === "object" ? this.object(chosen, value, path, label) : this.list(chosen, value, path, label);
      return make("fieldset", { "data-path": path }, make("legend", {}, label, " ", remove), make("span", { class: "soft" }, ...coded(about)), others, ...inner);
    }
    return make("div", { class: "field", "data-path": path }, ...this.plain(label, chosen, holder, at), make("span", {}, others, " ", remove),
      make("span", { class: "about" }, ...coded(about)));
  }

  plain(label, schema, holder, at) {
    const id = `field-${++ids}`;
    const change = (value) => { holder[at] = value; };
    let field;
    if (schema.type === "boolean") {
      field = make("input", { id, type: "checkbox", checked: holder[at] === true, onchange: (event) => change(event.target.checked) });
    } else if (schema.enum && schema.enum.length > 1) {
      field = make("select", { id, onchange: (event) => change(event.target.value) },
        ...schema.enum.map((one) => make("option", { value: one, selected: one === holder[at] }, one)));
    } else {
      const all = schema.plain ?? [schema];
      const numbers = all.some((one) => ["integer", "number"].includes(one.type));
      field = make("input", { id, value: holder[at] ?? "", list: null, autocomplete: "off", spellcheck: "false",
        oninput: (event) => {
          const text = event.target.value.trim();
          change(numbers && /^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(text) ? Number(text) : text);
        } });
      const words = all.flatMap((one) => one.enum ?? []);
      if (words.length) field.placeholder = `${words.join(", ")}…`;
    }
    return [make("label", { for: id }, label), field];
  }

  list(schema, value, path, label) {
    const items = value.map((_, number) => {
      const remove = make("button", { type: "button", class: "small", "aria-label": `Remove ${label} ${number + 1}`, onclick: () => {
        value.splice(number, 1);
        this.draw(path);
      } }, "✕");
      const name = value[number]?.name ?? `${label} ${number + 1}`;
      return this.field(String(name), schema.items, value, number, `${path}/${number}`, remove);
    });
    return [...items, make("p", { class: "buttons" }, make("button", { type: "button", onclick: () => {
      value.push(this.empty(this.choices(schema.items)[0]));
      this.draw(`${path}/${value.length - 1}`);
    } }, `Add one to ${label}`))];
  }
}
